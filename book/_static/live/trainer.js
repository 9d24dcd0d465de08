// A training on digits, step by step, and the worker that runs it. The page asks for some steps at a
// time: to pause is not to ask, and to begin anew is to ask for another training.
function minivitTrainer(engine, training, numbers) {
  "use strict";
  const BATCH = 32;
  const LAST = 20; // steps over which the loss is averaged
  const LOST = 1.25 * Math.log(10); // a mean loss well above that of guessing: the training has diverged

  /** What share of the images [height * width], normalised, a model puts into the right class. */
  function accuracy(model, images, labels) {
    const right = images.filter((image, i) => {
      const { logits } = engine.forward(model, image);
      return logits.indexOf(Math.max(...logits)) == labels[i];
    });
    return right.length / images.length;
  }

  /**
   * A training of an untrained model on these images; the same seed draws the same batches. Each
   * `step()` tells the loss and the share of right answers, both means of the last steps, and whether
   * the training has diverged.
   */
  function begin(model, images, labels, { steps, rate, seed = 0 }) {
    const uniform = numbers.uniforms(seed + 2e6), order = images.map((_, i) => i);
    const moments = {}, size = Math.min(BATCH, images.length), losses = [], rights = [];
    const mean = (values) => values.slice(-LAST).reduce((a, b) => a + b, 0) / Math.min(LAST, values.length);
    let t = 0;
    /** The next batch: images drawn without putting them back. */
    function drawn() {
      for (let i = 0; i < size; i++) {
        const j = i + Math.floor(uniform() * (order.length - i));
        [order[i], order[j]] = [order[j], order[i]];
      }
      return order.slice(0, size);
    }
    function step() {
      const batch = drawn(), truth = batch.map((i) => labels[i]);
      const { loss, gradient, logits } =
        training.lossAndGradient(model, batch.map((i) => images[i]), truth);
      training.adamw(model.layers, gradient, moments, t + 1, rate * training.schedule(t, steps));
      t += 1;
      losses.push(loss);
      rights.push(truth.filter((label, b) => {
        const row = [...logits.subarray(b * 10, b * 10 + 10)];
        return row.indexOf(Math.max(...row)) == label;
      }).length / size);
      const diverged = !Number.isFinite(loss) || (t >= LAST && mean(losses) > LOST);
      return { t, loss: mean(losses), fitted: mean(rights), diverged, done: diverged || t == steps };
    }
    return { model, step };
  }

  /**
   * Answers the page. `start`: how to begin; `data`: digits as bytes, once; `go`: how many steps. What is
   * told comes with the number of the training, so that the page can tell an old answer from a new one.
   */
  function serve(post) {
    let digits = null, run = null;
    return ({ number, data, start, go }) => {
      digits = data ?? digits;
      if (start) {
        const model = training.untrained(start), { train, test } = digits;
        const read = (images) => images.map((bytes) => engine.normalised(model, bytes));
        run = begin(model, read(train.images.slice(0, start.images)), train.labels, start);
        run.test = read(test.images);
      }
      let told = null;
      const from = performance.now();
      for (let i = 0; i < go && !told?.done; i++) told = run.step();
      const milliseconds = (performance.now() - from) / go;
      const right = accuracy(run.model, run.test, digits.test.labels);
      post({ number, ...told, milliseconds, accuracy: right, layers: run.model.layers });
    };
  }
  return { accuracy, begin, serve };
}
