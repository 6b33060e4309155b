// What speedscope's own importers make of files, as JSON on standard output.
//
//     node speedscope.mjs FOLDER-OF-THE-PACKAGE FILE...
//
// The package is one script for browsers. It is run up to where it would draw; its importers are a module in it, which
// the bundler has left under its exports' names.
import fs from 'node:fs';
import path from 'node:path';

const [, , folder, ...files] = process.argv;
const release = path.join(folder, 'dist', 'release');
const script = fs.readdirSync(release).find((name) => /^speedscope-.*\.js$/.test(name));
const source = fs.readFileSync(path.join(release, script), 'utf8');
const exported = /([\w$]+)=\{\};[\w$]+\(\1,\{[^}]*importProfileGroupFromText:/.exec(source)[1];
const quoted = exported.replaceAll('$', '\\$');
const load = new RegExp(`then\\(\\(\\)=>\\(([\\w$]+)\\(\\),${quoted}\\)\\)`).exec(source)[1];
const beforeDrawing = 'console.log(`speedscope v';
const patched = source.replace(beforeDrawing, `globalThis.importers=(${load}(),${exported});return;${beforeDrawing}`);

const anything = new Proxy(function () {}, {
  get: (_, key) => (key === Symbol.toPrimitive ? () => '' : anything),
  apply: () => anything,
  construct: () => anything,
  set: () => true,
});
const print = console.log;
console.log = () => {};
new Function('window', 'document', 'navigator', 'location', patched)(anything, anything, anything, anything);

function described(profile) {
  const selfWeights = {};
  profile.forEachFrame((frame) => {
    if (frame.getSelfWeight() > 0) selfWeights[frame.name] = (selfWeights[frame.name] ?? 0) + frame.getSelfWeight();
  });
  const opened = {};
  const stacks = [];
  const stack = [];
  profile.forEachCall(
    (node) => {
      opened[node.frame.name] = (opened[node.frame.name] ?? 0) + 1;
      stack.push(node.frame.name);
    },
    () => {
      stacks.push(stack.join(';'));
      stack.pop();
    },
  );
  const name = profile.getName();
  return { name, total: profile.getTotalWeight(), selfWeights, opened, stacks: [...new Set(stacks)] };
}

const out = [];
for (const file of files) {
  const text = fs.readFileSync(file, 'utf8');
  const group = await globalThis.importers.importProfileGroupFromText(path.basename(file), text);
  if (!group) throw new Error(`speedscope makes nothing of ${file}`);
  out.push(group.profiles.map(described));
}
print(JSON.stringify(out));
