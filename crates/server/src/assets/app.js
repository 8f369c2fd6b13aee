// Progressive enhancement of pages that work without it: live numbers, confirmation
// before irreversible changes, a key for the search field, busy buttons.
"use strict";

(() => {
  const live = () => document.getElementById("live");
  let last = Date.now();
  let wanted = false;
  // Deliveries follow an event but have none of their own.
  let lively = 0;
  let busy = false;

  // An update must not discard input in progress.
  const isOccupied = () => {
    const active = document.activeElement;
    const region = live();
    return document.hidden || !region || (region.contains(active) && active.matches("input, select, textarea"))
      || region.querySelector("details[open]") !== null;
  };

  const refresh = async () => {
    if (busy || isOccupied()) return;
    busy = true;
    wanted = false;
    last = Date.now();
    try {
      const response = await fetch(location.href, { headers: { "x-live": "1" }, redirect: "error" });
      if (!response.ok) return;
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const fresh = page.getElementById("live");
      if (fresh && live() && !isOccupied()) live().replaceWith(document.adoptNode(fresh));
    } catch {
      // Retried at the next event or tick.
    } finally {
      busy = false;
    }
  };

  // On a phone the navigation is wider than the screen.
  const here = document.querySelector("header nav [aria-current]");
  if (here) here.parentElement.scrollLeft = here.offsetLeft - 60;

  const dot = document.getElementById("pulse");
  if (live() && window.EventSource) {
    const source = new EventSource("/api/v1/events");
    source.onopen = () => dot && dot.classList.add("on");
    source.onerror = () => dot && dot.classList.remove("on");
    source.addEventListener("event", () => {
      wanted = true;
      lively = Date.now() + 10000;
    });
    setInterval(() => {
      const age = Date.now() - last;
      const interval = Date.now() < lively ? 4000 : 15000;
      if ((wanted && age > 2000) || age > interval) refresh();
    }, 500);
  }

  document.addEventListener("submit", (event) => {
    const question = event.target.dataset.confirm;
    if (question && !window.confirm(question)) {
      event.preventDefault();
      return;
    }
    const button = event.submitter;
    if (button && event.target.method === "post") {
      button.setAttribute("aria-busy", "true");
      setTimeout(() => { button.disabled = true; }, 0);
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input, select, textarea")) return;
    const field = document.querySelector("input[type=search]");
    if (field) {
      event.preventDefault();
      field.focus();
      field.select();
    }
  });
})();
