// Starts the page's sections, each by itself: what fails in one leaves the others as they are.

function failed(section, error) {
  const place = byId(section);
  console.error(error);
  if (place) place.append(make("p", { class: "alarm" }, `This section can't be shown: ${error.message}`));
}

async function begin(section, start) {
  if (!byId(section)) return;
  try {
    await start();
  } catch (error) {
    failed(section, error);
  }
}

/** Copy a command; where the browser lets nobody copy, select it. */
async function copy(button) {
  const code = button.parentElement.querySelector("code");
  const range = document.createRange();
  range.selectNodeContents(code);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  let done = false;
  try {
    await navigator.clipboard.writeText(code.textContent);
    done = true;
  } catch {
    done = document.execCommand("copy");
  }
  button.textContent = done ? "copied" : "selected";
  setTimeout(() => {
    button.textContent = "copy";
  }, 1600);
}

const page = JSON.parse(byId("document").textContent);
readColors();
rankFunctions(page);
for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", () => copy(button));
addEventListener("scroll", () => tip.hide(), { passive: true });
begin("paths", () => startPaths(page));
begin("flame", () => new Flame(page));
begin("sizes", () => startSizes(page));
if (canUnpack()) {
  if (page.viewed) begin("sampled", () => Sampled.start(page));
  begin("timeline", () => startTimeline(page));
  begin("matrix", () => Matrix.start(page));
  begin("links", async () => new Links(await LinksData.read(page.links)));
} else {
  for (const section of ["timeline", "matrix", "links"]) {
    const place = byId(section);
    if (place)
      place.querySelector(".hint").textContent =
        "This browser can't unpack it (DecompressionStream): take one from 2023 or later.";
  }
}
