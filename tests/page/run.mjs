// Runs the page's engine on what Python wrote: node run.mjs ENGINE MODEL.js JOBS.json > answers.
import { readFileSync } from "node:fs";
import { basename } from "node:path";

const [engineFile, modelFile, jobsFile] = process.argv.slice(2);
const engine = new Function(`${readFileSync(engineFile, "utf8")}; return minivitEngine()`)();
new Function(readFileSync(modelFile, "utf8"))();
const model = engine.open(globalThis.minivitModels[basename(modelFile, ".js")]);
const { images, jobs } = JSON.parse(readFileSync(jobsFile, "utf8"));
const pictures = images.map((bytes) => engine.normalised(model, bytes));

/** Typed arrays become lists, which JSON knows. */
const plain = (key, value) => (ArrayBuffer.isView(value) ? [...value] : value);
const answers = jobs.map(({ image, ask, switches }) => {
  const trace = engine.forward(model, pictures[image], switches);
  return Object.fromEntries(ask.map((what) => [what, {
    logits: () => trace.logits,
    seen: () => trace.seen,
    attention: () => trace.attention,
    states: () => trace.states.map((x) => x.data ?? x),
    lens: () => engine.lens(model, trace, switches),
    rollout: () => engine.rollout(model, trace),
    deletion: () => engine.deletion(model, pictures[image], switches),
    seconds: () => {
      const start = performance.now();
      for (let i = 0; i < 20; i++) engine.forward(model, pictures[image], switches);
      return (performance.now() - start) / 20e3;
    },
  }[what]()]));
});
process.stdout.write(JSON.stringify(answers, plain));
