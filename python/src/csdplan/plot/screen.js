// Reads a figure's values under the pointer, or by the arrow keys, aloud and below the figure.
(() => {
  const read = (svg, index) => {
    const places = JSON.parse(svg.dataset.hover);
    const at = Math.max(0, Math.min(places.length - 1, index));
    svg.dataset.at = at;
    const height = svg.viewBox.baseVal.height;
    let line = svg.querySelector(".cross");
    if (!line) {
      line = document.createElementNS("http://www.w3.org/2000/svg", "path");
      line.setAttribute("class", "cross");
      svg.append(line);
      const said = document.createElement("p");
      said.className = "read";
      said.setAttribute("aria-live", "polite");
      svg.after(said);
    }
    line.setAttribute("d", `M${places[at][0]} 26V${height - 44}`);
    svg.nextElementSibling.textContent = places[at][1];
  };
  const near = (svg, event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    const places = JSON.parse(svg.dataset.hover).map((place) => Math.abs(place[0] - x));
    return places.indexOf(Math.min(...places));
  };
  const figure = (event) => event.target.closest?.("svg[data-hover]");
  document.addEventListener("pointermove", (event) => {
    const svg = figure(event);
    if (svg) read(svg, near(svg, event));
  });
  document.addEventListener("pointerdown", (event) => {
    const svg = figure(event);
    if (svg) read(svg, near(svg, event));
  });
  document.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const svg = figure(event);
    if (!svg || !step) return;
    event.preventDefault();
    read(svg, svg.dataset.at === undefined ? 0 : Number(svg.dataset.at) + step);
  });
})();
