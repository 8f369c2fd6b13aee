// Small help for pages that work without it: live numbers, questions before what
// can't be undone, a key for the search field, buttons that say they are busy.
"use strict";

(() => {
  const live = () => document.getElementById("live");
  let last = Date.now();
  let wanted = false;
  // What follows an event (a delivery) has none of its own.
  let lively = 0;
  let busy = false;

  // A person who is writing or choosing must not lose it to news.
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
      const answer = await fetch(location.href, { headers: { "x-live": "1" }, redirect: "error" });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("live");
      if (fresh && live() && !isOccupied()) live().replaceWith(document.adoptNode(fresh));
    } catch {
      // The next event or tick tries again.
    } finally {
      busy = false;
    }
  };

  // On a phone the row of places is wider than the screen.
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
      const patience = Date.now() < lively ? 4000 : 15000;
      if ((wanted && age > 2000) || age > patience) refresh();
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
