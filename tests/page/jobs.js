// What a test asks of the page's engine, under Node: a list of answers to its jobs.
function runJobs(engine, stored, { images, jobs }) {
  const model = engine.open(stored);
  const pictures = images.map((bytes) => engine.normalised(model, bytes));
  const plain = (key, value) => (ArrayBuffer.isView(value) ? [...value] : value); // JSON knows lists
  const answered = jobs.map(({ image, ask, switches }) => {
    const trace = engine.forward(model, pictures[image], switches);
    const answers = {
      logits: () => trace.logits,
      seen: () => trace.seen,
      attention: () => trace.attention,
      states: () => trace.states.map((x) => x.data ?? x),
      lens: () => engine.lens(model, trace, switches),
      rollout: () => engine.rollout(model, trace),
      deletion: () => engine.deletion(model, pictures[image], switches),
    };
    return Object.fromEntries(ask.map((what) => [what, answers[what]()]));
  });
  return JSON.parse(JSON.stringify(answered, plain));
}
