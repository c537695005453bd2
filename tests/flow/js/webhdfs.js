// Drives npm's webhdfs as OpenPAI's VS Code client does: calls come as lines of JSON, and so do the answers.
const readline = require("readline");
const { Readable } = require("stream");
const WebHDFS = require("webhdfs");

function write(hdfs, path, text, append, opts) {
  return new Promise((resolve, reject) => {
    const remote = hdfs.createWriteStream(path, append, opts);
    remote.on("error", reject);
    remote.on("finish", resolve);
    Readable.from([Buffer.from(text, "base64")]).pipe(remote);
  });
}

function read(hdfs, path, opts) {
  return new Promise((resolve, reject) => {
    const pieces = [];
    const remote = hdfs.createReadStream(path, opts);
    remote.on("error", reject);
    remote.on("data", (piece) => pieces.push(piece));
    remote.on("finish", () => resolve(Buffer.concat(pieces).toString("base64")));
  });
}

function call(hdfs, method, args) {
  return new Promise((resolve, reject) => {
    hdfs[method](...args, (error, found) => (error instanceof Error ? reject(error) : resolve(found === undefined ? null : found)));
  });
}

async function answer({ client, method, args }) {
  const hdfs = WebHDFS.createClient(client);
  try {
    if (method === "write") return { value: (await write(hdfs, ...args)) || null };
    if (method === "read") return { value: await read(hdfs, ...args) };
    if (method === "exists") return { value: await new Promise((resolve) => hdfs.exists(args[0], resolve)) };
    return { value: await call(hdfs, method, args) };
  } catch (error) {
    return { refused: error.message };
  }
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await answer(JSON.parse(line))) + "\n");
  }
})();
