"use strict";
// The page works without this script, which only keeps it fresh, presses its
// buttons without a reload, and shows pictures in place.
(() => {
  const pause = 2000; // ms, between looks at the page, and between pictures
  const home = location.origin + location.pathname; // without a name and password
  const main = document.getElementById("main");
  const live = document.getElementById("live");

  const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

  function tell(ok) {
    live.classList.toggle("lost", !ok);
    const dot = document.createElement("span");
    dot.className = "dot";
    live.replaceChildren(dot, ok ? "live" : "cdpmux does not answer");
  }

  // morph makes an element like another one, keeping what is the reader's own:
  // open details, pictures, the focus.
  function morph(old, next) {
    for (const { name } of [...old.attributes]) {
      if (name !== "open" && !next.hasAttribute(name)) old.removeAttribute(name);
    }
    for (const { name, value } of next.attributes) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    if (next.hasAttribute("data-keep")) return;
    let at = old.firstChild;
    for (const want of [...next.childNodes]) {
      let have = at;
      if (want.id) have = [...old.children].find((c) => c.id === want.id) || null;
      if (have && have.nodeName === want.nodeName && (have.id || "") === (want.id || "")) {
        if (have === at) at = at.nextSibling;
        else old.insertBefore(have, at);
        if (want.nodeType === Node.ELEMENT_NODE) morph(have, want);
        else if (have.data !== want.data) have.data = want.data;
      } else {
        old.insertBefore(document.importNode(want, true), at);
      }
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
  }

  async function show(response) {
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    const next = new DOMParser().parseFromString(text, "text/html");
    morph(main, next.getElementById("main"));
  }

  const ask = (method, address, body) => fetch(new URL(address, home), {
    method, body, cache: "no-store", headers: { Accept: "text/html" },
  });

  let acting = 0; // what was fetched before a button was pressed is out of date
  async function watch() {
    for (;;) {
      await sleep(pause);
      if (document.hidden || acting) continue;
      try {
        const response = await ask("GET", "");
        if (!acting) await show(response);
        tell(true);
      } catch {
        tell(false);
      }
    }
  }

  async function act(form) {
    const button = form.querySelector("button");
    button.disabled = true;
    acting++;
    try {
      await show(await ask("POST", form.getAttribute("action"), new URLSearchParams(new FormData(form))));
      form.closest("details").open = false;
    } catch (e) {
      const said = document.createElement("p");
      said.className = "notice";
      said.textContent = e.message || "cdpmux does not answer";
      main.prepend(said);
    } finally {
      acting--;
      button.disabled = false;
    }
  }

  // picture shows a tab in place until it is pressed again.
  async function picture(form) {
    const slot = document.getElementById(form.dataset.picture);
    const button = form.querySelector("button");
    if (slot.firstChild) {
      slot.replaceChildren();
      button.textContent = "Picture";
      return;
    }
    const image = document.createElement("img");
    slot.replaceChildren("Looking …");
    button.textContent = "Hide";
    let shown = "";
    const wanted = () => slot.isConnected && slot.firstChild;
    while (wanted()) {
      if (document.hidden) {
        await sleep(pause);
        continue;
      }
      let failure;
      try {
        const response = await ask("POST", form.getAttribute("action"), new URLSearchParams(new FormData(form)));
        if (response.ok) {
          const next = URL.createObjectURL(await response.blob());
          if (wanted()) {
            image.src = next;
            image.alt = "what the tab shows";
            if (!image.isConnected) slot.replaceChildren(image);
          }
          URL.revokeObjectURL(shown);
          shown = next;
        } else if (response.status !== 429) {
          const problem = await response.json();
          failure = problem.error + "; " + problem.next;
        }
      } catch {
        failure = "cdpmux does not answer";
      }
      if (failure) {
        if (wanted()) slot.replaceChildren(failure);
        break;
      }
      await sleep(pause);
    }
    URL.revokeObjectURL(shown);
  }

  document.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.target.dataset.picture) picture(event.target);
    else act(event.target);
  });
  tell(true);
  watch();
})();
