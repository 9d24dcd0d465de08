// Before a page of the site is printed: waits for its fonts, images and models, and makes Chromium
// note where every anchor is. Gives the title, and the headings with their anchors.
async () => {
  const later = () => new Promise((done) => setTimeout(done, 50));
  await document.fonts.ready;
  for (const image of document.images) image.loading = "eager";
  await Promise.all([...document.images].map((image) => image.decode().catch(() => 0)));
  for (const model of document.querySelectorAll(".live[data-model]")) {
    while (!("ready" in model.dataset || model.querySelector("[role=alert]"))) {
      // It waits until its reader comes near.
      model.scrollIntoView();
      await later();
    }
  }
  const article = document.querySelector("article");
  const text = (node) => node.innerText.replace(/#$/, "").trim();
  const headings = [...article.querySelectorAll("section > h2")]
    .map((node) => [node.parentElement.id, text(node)]);
  const title = text(article.querySelector("h1"));
  const places = document.createElement("div"); // a place gets a name in the file if a link leads there
  places.hidden = true;
  for (const { id } of article.querySelectorAll("[id]")) {
    const link = document.createElement("a");
    link.href = `#${id}`;
    places.append(link);
  }
  article.append(places);
  return [title, headings];
}
