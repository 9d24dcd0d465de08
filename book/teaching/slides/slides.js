// Starts reveal.js, and says on <html data-settled> when nothing more will appear: then one can print.
Reveal.initialize({
  width: 1280, height: 720, margin: 0, display: "flex", center: false, transition: "none",
  hash: true, slideNumber: "c/t", pdfMaxPagesPerSlide: 1, scrollActivationWidth: null, plugins: [RevealNotes],
}).then(async () => {
  const printing = Reveal.isPrintView();
  for (const model of printing ? document.querySelectorAll(".live[data-model]") : []) {
    while (!("ready" in model.dataset || model.querySelector("[role=alert]"))) {
      // It waits until its reader comes near.
      model.scrollIntoView();
      await new Promise((later) => setTimeout(later, 100));
    }
  }
  document.documentElement.dataset.settled = "";
});
