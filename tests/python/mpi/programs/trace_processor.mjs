// Perfetto's trace_processor, as its web page runs it, on one stream of requests.
//
//     node trace_processor.mjs FOLDER-OF-THE-PAGE REQUESTS REPLIES
//
// REQUESTS and REPLIES are files of TraceProcessorRpcStream messages. The engine expects a web worker: it gets what it
// uses of one.
import fs from 'node:fs';
import path from 'node:path';

const [, , folder, requests, replies] = process.argv;

class XMLHttpRequest {
  open(_method, url) {
    this.url = url;
  }
  send() {
    const bytes = fs.readFileSync(path.join(folder, path.basename(this.url)));
    this.status = 200;
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  }
}

const self = { location: { href: 'http://localhost/' } };
const quiet = { log() {}, warn() {}, error: console.error };
const engine = fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8');
const worker = ['process', 'self', 'WorkerGlobalScope', 'XMLHttpRequest', 'importScripts', 'console'];
new Function(...worker, engine)(undefined, self, class {}, XMLHttpRequest, () => {}, quiet);

const out = fs.openSync(replies, 'w');
const port = { postMessage: (bytes) => fs.writeSync(out, bytes) };
self.onmessage({ data: port });
// It is compiled by now, and goes on in callbacks of its own before it takes requests.
await new Promise((resolve) => setTimeout(resolve, 100));
port.onmessage({ data: new Uint8Array(fs.readFileSync(requests)) });
fs.closeSync(out);
