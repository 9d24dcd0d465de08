// Paper is white: a page is printed as it looks by day.
const root = document.documentElement;
let onScreen = root.dataset.theme;
addEventListener("beforeprint", () => {
  onScreen = root.dataset.theme;
  root.dataset.theme = "light";
});
addEventListener("afterprint", () => (root.dataset.theme = onScreen));

// Images further down wait for the page, not for the reader, where one may want to print: a
// browser that prints does not always wait for them.
addEventListener("load", () => {
  if (innerWidth < 960) return;
  setTimeout(() => document.querySelectorAll("img[loading=lazy]").forEach((picture) => {
    picture.loading = "eager";
  }), 1500);
});
