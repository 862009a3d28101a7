// Filters the lists and copies commands. The page is readable without scripts.
for (const filter of document.querySelectorAll(".filter")) {
  const section = filter.closest("section");
  const input = filter.querySelector("input");
  const items = [...section.querySelectorAll("article, tbody tr")];
  filter.hidden = false;
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const item of items) {
      const text = ((item.closest(".group") ?? item).querySelector("h3, th").textContent + item.textContent).toLowerCase();
      item.hidden = !words.every((word) => text.includes(word));
    }
    for (const group of section.querySelectorAll(".group")) {
      group.hidden = !group.querySelector("article:not([hidden])");
    }
    filter.querySelector("output").textContent = `${items.filter((item) => !item.hidden).length} of ${items.length}`;
  });
}
for (const request of document.querySelectorAll(".request")) {
  const button = document.createElement("button");
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(request.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  request.previousElementSibling.append(button);
}
