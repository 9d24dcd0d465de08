// node run.mjs ENGINE MODEL JOBS: runs the page's engine on a model that Python wrote.
import { readFileSync } from "node:fs";
import { basename } from "node:path";

const [engine, model, jobs] = process.argv.slice(2);
const made = (file, name, encoding = "utf8") =>
  new Function(`${readFileSync(file, encoding)}; return ${name}`)();
made(model, "null", "utf16le");
const stored = globalThis.minivitModels[basename(model, ".js")];
const runJobs = made(new URL("jobs.js", import.meta.url), "runJobs");
process.stdout.write(runJobs(made(engine, "minivitEngine()"), stored, JSON.parse(readFileSync(jobs))));
