// node run.mjs ENGINE MODEL JOBS: runs the page's engine on a model that Python wrote.
import { readFileSync } from "node:fs";
import { basename } from "node:path";

const [engine, model, jobs] = process.argv.slice(2);
const made = (file, name) => new Function(`${readFileSync(file, "utf8")}; return ${name}`)();
made(model, "null");
const text = globalThis.minivitModels[basename(model, ".js")];
const runJobs = made(new URL("jobs.js", import.meta.url), "runJobs");
process.stdout.write(runJobs(made(engine, "minivitEngine()"), text, JSON.parse(readFileSync(jobs))));
