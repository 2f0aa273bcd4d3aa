// Sends all fields at each change and shows the answer. The server computes everything.
(() => {
  const $ = (id) => document.getElementById(id);
  const body = document.body;
  const texts = JSON.parse(body.dataset.texts);
  let compares = body.dataset.compares === "1";
  let busy = false;
  let next = null; // change that came while the server was answering
  let buying = 0; // timer of the purchase that is asked for
  let ticking = 0;
  const last = new Map(); // HTML of each part that is shown

  const fields = (which) => {
    const found = { text: texts[which] };
    for (const one of $(`form-${which}`).elements) if (one.name) found[one.name] = one.value;
    return found;
  };
  const asked = () => ({ a: fields("a"), b: compares ? fields("b") : null });
  const width = () => {
    const room = $("buy").clientWidth;
    const side = compares && matchMedia("(min-width: 64rem)").matches;
    return Math.floor(side ? (room - 24) / 2 : room);
  };
  const post = async (path, what) => {
    const response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(what),
    });
    if (!response.ok) throw new Error((await response.text()).trim());
    return response.json();
  };

  const spoken = (slider, value) =>
    value === "" ? slider.dataset.zero : `${value} ${slider.dataset.unit}`.trim();
  const toSlider = (field) => {
    const slider = $(`${field.id}-slide`);
    if (!slider) return;
    const stops = JSON.parse(slider.dataset.stops);
    const value = Number(field.value);
    if (Number.isNaN(value)) return;
    const far = stops.map((stop) => Math.abs(stop - value));
    slider.value = far.indexOf(Math.min(...far));
    slider.setAttribute("aria-valuetext", spoken(slider, field.value));
  };
  const toField = (slider) => {
    const stop = JSON.parse(slider.dataset.stops)[slider.value];
    const text = slider.dataset.zero && stop === 0 ? "" : String(stop);
    $(slider.dataset.for).value = text;
    slider.setAttribute("aria-valuetext", spoken(slider, text));
  };
  const step = (field, by) => {
    const slider = $(`${field.id}-slide`);
    const stops = JSON.parse(slider.dataset.stops);
    const value = Number(field.value);
    const above = stops.findIndex((stop) => stop > value);
    const below = stops.findLastIndex((stop) => stop < value);
    const at = by > 0 ? above : below;
    if (at < 0) return;
    slider.value = at;
    toField(slider);
    change();
  };

  const replace = (id, html, forced) => {
    const box = $(id);
    if (last.get(id) === html) return;
    const focused = document.activeElement;
    const inside = box.contains(focused);
    if (inside && focused.tagName === "INPUT" && !forced) return;
    box.innerHTML = html;
    last.set(id, html);
    if (inside && focused.id) $(focused.id)?.focus();
  };
  const show = (answer, forced) => {
    if (answer.fault) {
      $("refused").textContent = answer.fault;
      return;
    }
    for (const wrong of document.querySelectorAll(".wrong")) wrong.textContent = "";
    for (const one of document.querySelectorAll("[aria-invalid]")) one.removeAttribute("aria-invalid");
    for (const [id, fault] of Object.entries(answer.faults)) {
      if ($(`${id}-wrong`)) $(`${id}-wrong`).textContent = fault;
      $(id)?.setAttribute("aria-invalid", "true");
    }
    if (Object.keys(answer.faults).length) {
      rest();
      $("bought").textContent = "One of the fields is wrong: it is marked";
      return;
    }
    for (const [id, html] of Object.entries(answer.html)) {
      if (last.get(id) === html) continue;
      $(id).innerHTML = html;
      last.set(id, html);
    }
    for (const [id, html] of Object.entries(answer.forms)) replace(id, html, forced);
    for (const [which, values] of Object.entries(answer.values)) {
      texts[which] = values.text;
      for (const one of $(`form-${which}`).elements) {
        // What a person types stays as it is typed, unless an action has changed it.
        const typing = one === document.activeElement && !forced;
        if (!one.name || typing || !(one.name in values)) continue;
        const typed = one.tagName === "TEXTAREA" || (one.tagName === "INPUT" && one.type !== "hidden");
        if (typed && one.value !== values[one.name]) {
          one.value = values[one.name];
          toSlider(one);
        }
      }
    }
    $("link").href = answer.link;
    history.replaceState(null, "", answer.link);
  };
  const change = async (act) => {
    if (busy) {
      next = { act: act ?? next?.act };
      return;
    }
    busy = true;
    const began = performance.now();
    try {
      const answer = await post("answer", { ...asked(), do: act, width: width() });
      if (!next) show(answer, Boolean(act) && act.what !== "redraw");
      // Where a new part is typed in, the fault of it is out of sight at the top.
      if (act?.what === "add-part") $(`${act.which}-parts-wrong`).textContent = $("refused").textContent;
      requestAnimationFrame(() =>
        setTimeout(() => { body.dataset.tookMs = (performance.now() - began).toFixed(1); }));
      if (!answer.fault && !Object.keys(answer.faults).length) plan();
    } catch (error) {
      $("refused").textContent = `No answer came: ${error.message}. Is csdplan ui still running?`;
    }
    busy = false;
    if (next) {
      const { act: later } = next;
      next = null;
      change(later);
    }
  };
  const working = (seconds) => {
    const said = `Working: what to buy, for ${seconds} s`;
    $("bought").textContent = said;
    $("working").textContent = $("buy").innerHTML ? `${said}. Below is the answer of before.` : said;
  };
  const rest = () => {
    clearTimeout(buying);
    buying = 0; // an answer that is under way is of before
    clearInterval(ticking);
    $("working").hidden = true;
    $("buy").setAttribute("aria-busy", "false");
  };
  const plan = () => {
    rest();
    const began = performance.now();
    const tick = () => working(Math.floor((performance.now() - began) / 1000));
    $("buy").setAttribute("aria-busy", "true");
    $("working").hidden = false;
    tick();
    ticking = setInterval(tick, 1000);
    // A purchase takes longer than a picture: it waits until the fields rest.
    buying = setTimeout(async () => {
      const mine = buying;
      let answer;
      try {
        answer = await post("purchase", { ...asked(), width: width() });
      } catch (error) {
        answer = { fault: `No purchase could be planned: ${error.message}` };
      }
      if (mine !== buying) return;
      rest();
      $("buy").innerHTML = answer.buy ?? "";
      $("bought").innerHTML = answer.short ?? "No purchase";
      if (answer.fault) $("buy").textContent = answer.fault;
    }, 400);
  };

  const edit = (which) => {
    body.dataset.shown = which;
    for (const one of ["a", "b"]) {
      $(`tab-${one}`).setAttribute("aria-pressed", String(one === which));
      $(`form-${one}`).hidden = one !== which;
    }
  };
  const compare = (on) => {
    compares = on;
    body.dataset.compares = on ? "1" : "0";
    $("compare").textContent = on ? "Close scenario B" : "Compare with a second scenario";
    $("compare").setAttribute("aria-expanded", String(on));
    edit(on ? "b" : "a");
  };
  const ofKind = (kind) => {
    for (const one of kind.closest(".newpart").querySelectorAll("[data-kinds]")) {
      one.hidden = !one.dataset.kinds.split(" ").includes(kind.value);
    }
  };
  const newPart = (which) => {
    const shown = [...$(`${which}-newpart`).querySelectorAll("[data-part]")];
    return Object.fromEntries(shown.map((one) => [one.dataset.part, one.value]));
  };
  const save = async (form) => {
    const file = await post("save", { ...asked(), form, which: body.dataset.shown, width: width() });
    if (file.fault) {
      $("refused").textContent = file.fault;
      return;
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([file.text]));
    link.download = file.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const upload = async (input, what, which) => {
    const [file] = input.files;
    input.value = "";
    if (!file) return;
    const most = Number(body.dataset.uploadMax);
    if (file.size > most) {
      $("refused").textContent = `upload = ${file.size} bytes: expected at most ${most} bytes`;
      return;
    }
    change({ what, which, text: await file.text() });
  };

  document.addEventListener("input", (event) => {
    const one = event.target;
    if (one.type === "file") return;
    if (one.dataset.part) {
      if (one.dataset.part === "kind") ofKind(one);
      return;
    }
    if (one.type === "range") toField(one);
    else if (one.tagName === "INPUT") toSlider(one);
    change();
  });
  document.addEventListener("change", (event) => {
    const one = event.target;
    if (one.dataset.part) return;
    if (one.id === "open-parts") upload(one, "open-parts", body.dataset.shown);
    else if (one.id === "open") upload(one, "open", body.dataset.shown);
    else if (one.type === "file") upload(one, "upload", one.dataset.which);
    else if (one.tagName === "INPUT" && one.type !== "range") change();
  });
  document.addEventListener("keydown", (event) => {
    const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    const one = event.target;
    if (!by || one.inputMode !== "decimal") return;
    event.preventDefault();
    step(one, by);
  });
  document.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const { do: what, which, at } = button.dataset;
    if (what === "add-part") change({ what, which, part: newPart(which) });
    else if (what) change({ what, which, at });
    else if (button.id === "tab-a") edit("a");
    else if (button.id === "tab-b") edit("b");
    else if (button.id === "compare") {
      compare(!compares);
      change(compares ? { what: "compare" } : undefined);
    } else if (["csv", "json", "request", "report", "parts"].includes(button.id)) save(button.id);
    else if (button.id === "mode") {
      const root = document.documentElement;
      const dark = matchMedia("(prefers-color-scheme: dark)").matches;
      const now = root.dataset.mode ?? (dark ? "dark" : "light");
      root.dataset.mode = now === "dark" ? "light" : "dark";
    }
  });

  if (compares) compare(true);
  else edit("a");
  if (matchMedia("(max-width: 60rem)").matches) {
    for (const one of document.querySelectorAll(".controls details, .explained, .more")) one.open = false;
  }
  // The figures were drawn for a usual width: draw them for this one.
  change({ what: "redraw" });
  let wide = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === wide) return;
    wide = innerWidth;
    change({ what: "redraw" });
  });
})();
