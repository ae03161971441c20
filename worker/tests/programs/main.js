const fs = require("fs");
const { Worker, isMainThread, parentPort } = require("worker_threads");
if (isMainThread) {
  fs.promises.writeFile("state", "40").then(() => {
    new Worker(__filename).on("message", (n) => console.log(Number(fs.readFileSync("state")) + n));
  });
} else {
  parentPort.postMessage(2);
}
