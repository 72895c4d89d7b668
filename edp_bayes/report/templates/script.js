"use strict";
(() => {
  const { values, epsilon } = JSON.parse(document.getElementById("values").textContent);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const slider = document.getElementById("epsilon-slider");
  const input = document.getElementById("epsilon-input");
  const note = document.getElementById("epsilon-note");
  const last = epsilon.length - 1;

  for (const element of all(".needs-script")) element.hidden = false;

  function place(line, pixel) {
    line.setAttribute("transform", `translate(${pixel} 0)`);
    line.setAttribute("visibility", "visible");
  }

  // Everything that depends on epsilon was put into words beforehand.
  function show(k) {
    slider.value = k;
    slider.setAttribute("aria-valuetext", values.epsilon[k]);
    for (const element of all("[data-value]"))
      element.textContent = values[element.dataset.value][k];
    for (const drawing of all("[data-cursor]"))
      place(drawing.querySelector(".cursor"), drawing.dataset.cursor.split(" ")[k]);
  }

  // The value of the grid that reads so, or else the next below: delta never rises with epsilon.
  function position(wanted) {
    const named = values.epsilon.findIndex((text) => Number(text) === wanted);
    if (named >= 0) return named;
    return Math.max(0, epsilon.filter((value) => value <= wanted).length - 1);
  }

  slider.addEventListener("input", () => {
    show(Number(slider.value));
    input.value = values.epsilon[slider.value];
    note.textContent = "";
  });
  input.addEventListener("input", () => {
    const wanted = input.valueAsNumber;
    if (Number.isNaN(wanted)) {
      note.textContent = "Give a number.";
      return;
    }
    if (wanted < epsilon[0] && wanted !== Number(values.epsilon[0])) {
      note.textContent = `The result says nothing below ε = ${values.epsilon[0]}.`;
      return;
    }
    const k = position(wanted);
    show(k);
    note.textContent = Number(values.epsilon[k]) === wanted
      ? ""
      : `What is said at ε = ${values.epsilon[k]} holds at ${wanted} too: the risk never rises with ε.`;
  });

  function band(name, kind, k) {
    const lower = values[`${name}_${kind}_lower`];
    return lower ? `; ${kind} ${lower[k]} to ${values[`${name}_${kind}_upper`][k]}` : "";
  }

  for (const figure of all("figure[data-live]")) {
    const name = figure.dataset.live;
    const reading = figure.querySelector(".reading");
    for (const drawing of all("[data-cursor]", figure)) {
      const pixels = drawing.dataset.cursor.split(" ").map(Number);
      const pointer = drawing.querySelector(".pointer");
      drawing.addEventListener("pointermove", (event) => {
        const box = drawing.getBoundingClientRect();
        const at = ((event.clientX - box.left) / box.width) * drawing.viewBox.baseVal.width;
        let k = 0;
        pixels.forEach((pixel, j) => {
          if (Math.abs(pixel - at) < Math.abs(pixels[k] - at)) k = j;
        });
        place(pointer, pixels[k]);
        reading.textContent =
          `ε = ${values.epsilon[k]}: ${values[name][k]}` +
          band(name, "pointwise", k) +
          band(name, "simultaneous", k);
      });
      drawing.addEventListener("pointerleave", () => {
        pointer.setAttribute("visibility", "hidden");
        reading.textContent = "";
      });
    }
  }

  for (const box of all(".log-axis"))
    box.addEventListener("change", () => box.closest("figure").classList.toggle("log", box.checked));

  const search = document.getElementById("search");
  if (search) {
    const rows = all("#people tbody tr").map((row) => [
      row,
      row.querySelector("th").textContent.toLowerCase(),
    ]);
    const found = document.getElementById("found");
    search.addEventListener("input", () => {
      const wanted = search.value.trim().toLowerCase();
      let count = 0;
      for (const [row, name] of rows) {
        row.hidden = !name.includes(wanted);
        if (!row.hidden) count += 1;
      }
      found.textContent = wanted ? `${count} of ${rows.length}` : "";
    });
  }

  const chosen = document.getElementById("distribution");
  if (chosen) {
    const choose = () =>
      all(".distribution").forEach((block, k) => {
        block.hidden = k !== Number(chosen.value);
      });
    chosen.addEventListener("change", choose);
    choose();
  }

  show(Number(slider.value));
})();
