// The page's other half: a worker that holds one model and answers one question after another.
// Like engine.js one function, of whose text the worker is made.
function minivitWorker(engine) {
  "use strict";
  let model = null;

  const answers = {
    open: ({ text }) => {
      model = engine.open(text);
      const { layers, tensors, ...said } = model;
      const numbers = tensors.map(([, shape]) => shape.reduce((a, b) => a * b, 1));
      return { ...said, parameters: numbers.reduce((a, b) => a + b, 0) };
    },
    /** What the model answers, as it is and with the switches. */
    run: ({ bytes, switches, touched }) => {
      const image = engine.normalised(model, bytes), start = performance.now();
      const after = engine.forward(model, image, switches);
      const milliseconds = performance.now() - start;
      return {
        milliseconds,
        before: touched ? engine.forward(model, image).logits : after.logits,
        ...after,
        states: null, // of no use to the page
        lens: engine.lens(model, after, switches).map((row) => engine.softmax(row)),
        rollout: after.attention.length ? engine.rollout(model, after) : [],
      };
    },
    deletion: ({ bytes, switches, places }) =>
      engine.deletion(model, engine.normalised(model, bytes), switches, places),
  };

  onmessage = ({ data: { ask, ...given } }) => {
    try {
      postMessage({ answer: answers[ask](given) });
    } catch (error) {
      postMessage({ error: error.message });
    }
  };
}
