// Drives @microsoft/openpai-js-sdk as a program would: calls come as lines of JSON, and so do the answers.
const readline = require("readline");
const { PAIV1, PAIV2 } = require("@microsoft/openpai-js-sdk");

console.log = console.error; // the SDK talks while it waits
const clients = {};

function client(call) {
  const key = JSON.stringify([call.api, call.cluster]);
  if (!clients[key]) {
    const of = call.api === "v1" ? PAIV1 : PAIV2;
    clients[key] = new of.OpenPAIClient({ ...call.cluster });
  }
  return clients[key];
}

async function answer(call) {
  try {
    const part = call.part.split(".").reduce((found, name) => (name ? found[name] : found), client(call));
    const value = await part[call.method](...call.args);
    return { value: value === undefined ? null : value };
  } catch (error) {
    let body = error.error || error.data || {};
    if (typeof body === "string") {
      body = JSON.parse(body); // of calls whose answers the SDK does not take for JSON
    }
    return {
      refused: {
        name: error.name || "",
        status: error.status || error.statusCode || null,
        code: body.code || error.code || null,
        message: error.message || String(error),
      },
    };
  }
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await answer(JSON.parse(line))) + "\n");
  }
})();
