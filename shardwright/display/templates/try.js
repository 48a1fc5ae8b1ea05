"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const drop = document.getElementById("drop"), list = document.getElementById("results");
  const status = document.getElementById("status"), picker = document.getElementById("file");
  const sliders = [...document.querySelectorAll("#sliders input")];
  const shown = [], TALLEST = 340;

  const add = (parent, tag, text, kind) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    parent.append(element);
    return element;
  };
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const percent = (part) => (100 * part).toFixed(1) + " %";
  const slider = (label) => sliders[label] || sliders[0];
  // In float32, as the model compares. Where its own threshold was rounded to be shown, it counts as it is.
  const limit = (label) => Math.fround(Number(slider(label).value) === Number(slider(label).defaultValue)
    ? data.thresholds[label] : Number(slider(label).value));

  const paint = (canvas, answer, inside) => {
    const [height, width] = answer.size, context = canvas.getContext("2d", {willReadFrequently: true});
    canvas.width = width; canvas.height = height;
    canvas.style.aspectRatio = answer.shape[1] + "/" + answer.shape[0];
    canvas.style.maxWidth = Math.round(TALLEST * answer.shape[1] / answer.shape[0]) + "px";
    context.drawImage(answer.image, 0, 0);
    const pixels = context.getImageData(0, 0, width, height);
    data.colors.forEach((color, label) => {
      const at = label * width * height;
      for (let row = 0; row < height; row++) for (let column = 0; column < width; column++) {
        const place = row * width + column;
        if (!inside(label, at + place)) continue;
        const edge = row && column && row < height - 1 && column < width - 1 && !(inside(label, at + place - 1)
          && inside(label, at + place + 1) && inside(label, at + place - width) && inside(label, at + place + width));
        for (let c = 0; c < 3; c++) {
          const part = edge ? 1 : 0.45, value = pixels.data[4 * place + c];
          pixels.data[4 * place + c] = (1 - part) * value + part * color[c];
        }
      }
    });
    context.putImageData(pixels, 0, 0);
  };
  // Drops regions of fewer pixels than the model's smallest; pixels that touch at a corner are one region.
  const withoutSmall = (mask, width, least) => {
    const height = mask.length / width, found = new Int32Array(mask.length);
    let dropped = 0;
    for (let first = 0; first < mask.length; first++) {
      if (mask[first] !== 1) continue;
      let count = 1;
      found[0] = first; mask[first] = 2;
      for (let next = 0; next < count; next++) {
        const row = Math.floor(found[next] / width), column = found[next] % width;
        for (let r = Math.max(row - 1, 0); r <= Math.min(row + 1, height - 1); r++) {
          for (let c = Math.max(column - 1, 0); c <= Math.min(column + 1, width - 1); c++) {
            if (mask[r * width + c] === 1) { mask[r * width + c] = 2; found[count++] = r * width + c; }
          }
        }
      }
      if (count < least) { dropped += count; for (let k = 0; k < count; k++) mask[found[k]] = 0; }
    }
    return dropped;
  };
  const masks = (entry) => {
    const {answer} = entry, size = answer.size[0] * answer.size[1], all = new Uint8Array(answer.levels.length);
    entry.rows.replaceChildren();
    data.classes.forEach((name, label) => {
      const mask = all.subarray(label * size, (label + 1) * size), from = Math.round(100 * slider(label).value);
      let count = 0;
      for (let place = 0; place < size; place++) count += mask[place] = answer.levels[label * size + place] >= from;
      const least = data.smallest[label], dropped = least > 1 ? withoutSmall(mask, answer.size[1], least) : 0;
      const note = dropped ? ", and " + percent(dropped / size) + " in regions below " + least + " pixels, left out" : "";
      count -= dropped;
      row(entry.rows, name, answer.probabilities[label], count > 0, percent(count / size) + note, label);
    });
    paint(entry.canvas, answer, (label, place) => all[place] > 0);
  };
  const row = (table, name, score, chosen, note, label) => {
    const line = add(table, "tr"), head = add(line, "th");
    if (data.colors.length) add(head, "span", "", "dot").style.background = "rgb(" + data.colors[label] + ")";
    add(head, "bdi", name);
    const filled = add(add(add(line, "td"), "span", "", "bar" + (chosen ? " good" : "")), "span");
    filled.style.width = (100 * score).toFixed(1) + "%";
    add(line, "td", score.toFixed(3), "n");
    add(line, "td", note, "n");
  };
  const labels = (entry) => {
    const {answer} = entry;
    entry.rows.replaceChildren();
    const best = answer.probabilities.indexOf(Math.max(...answer.probabilities));
    const order = answer.probabilities.map((_, label) => label);
    order.sort((one, other) => answer.probabilities[other] - answer.probabilities[one]);
    for (const label of order.slice(0, 20)) {
      const score = answer.probabilities[label], over = score >= limit(label);
      const chosen = data.multi ? over : label === best && over;
      row(entry.rows, data.classes[label], score, chosen, chosen ? "predicted" : "", label);
    }
    entry.note.textContent = data.multi || answer.probabilities[best] >= limit(best) ? "" : "below the threshold";
  };
  const draw = (entry) => (data.masks ? masks : labels)(entry);

  const showAnswer = async (name, answer) => {
    answer.image = new Image();
    answer.image.src = answer.picture;
    await answer.image.decode();
    for (const part of ["levels", "truth"]) if (typeof answer[part] === "string") answer[part] = bytes(answer[part]);
    const card = document.createElement("article");
    card.className = "card item"; card.tabIndex = 0;
    add(add(card, "h3"), "bdi", name);
    add(card, "p", answer.milliseconds.toFixed(0) + " ms · " + answer.shape[1] + " × " + answer.shape[0] + " pixels", "note");
    const panels = add(card, "div", undefined, "panels"), entry = {answer};
    const panel = (caption) => {
      const figure = add(panels, "figure"), canvas = add(figure, "canvas");
      canvas.setAttribute("role", "img"); canvas.setAttribute("aria-label", caption + " of " + name);
      add(figure, "figcaption", caption);
      return canvas;
    };
    entry.canvas = panel(data.masks ? "prediction" : "image");
    if (!data.masks) paint(entry.canvas, answer, () => false);
    if (data.masks && answer.truth) paint(panel("annotation"), answer, (label, place) => answer.truth[place] === 1);
    if (answer.labels) add(card, "p", "annotation: " + (answer.labels.map((k) => data.classes[k]).join(", ") || "nothing"));
    const table = add(card, "table"), head = add(add(table, "thead"), "tr");
    for (const [text, kind] of [["class"], [""], ["score", "n"], [data.masks ? "area" : "", "n"]]) {
      add(head, "th", text, kind).scope = "col";
    }
    entry.rows = add(table, "tbody");
    entry.note = add(card, "p", "", "note");
    shown.unshift(entry);
    list.prepend(card);
    while (list.children.length > 24) { list.lastChild.remove(); shown.pop(); }
    draw(entry);
  };
  const ask = async (path, body, name) => {
    status.className = ""; status.textContent = "predicting " + name + " …";
    try {
      const reply = await fetch(path, {method: "POST", body, headers: {"X-Shardwright": "1",
        "Content-Type": "application/octet-stream"}});
      const answer = await reply.json();
      if (!reply.ok) throw new Error(answer.problem);
      await showAnswer(answer.key || name, answer);
      status.textContent = "";
    } catch (error) {
      status.className = "problem"; status.textContent = name + ": " + error.message;
    }
  };
  const askAll = async (files) => {
    for (const file of files) {
      if (file.size > data.most) {
        status.className = "problem";
        status.textContent = file.name + ": has " + file.size + " bytes, more than " + data.most + ". Make it smaller.";
      } else await ask("predict", file, file.name);
    }
  };
  picker.addEventListener("change", () => { askAll([...picker.files]).then(() => { picker.value = ""; }); });
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop" && event.dataTransfer) askAll([...event.dataTransfer.files]);
    });
  }
  document.addEventListener("paste", (event) => askAll([...event.clipboardData.files]));
  sliders.forEach((slider) => slider.addEventListener("input", () => {
    slider.parentElement.querySelector("output").textContent = Number(slider.value).toFixed(2);
    shown.forEach(draw);
  }));
  const example = document.getElementById("example");
  if (example) example.addEventListener("click", () => ask("example", "", "an image of the dataset"));
})();
