// Figures that change while one looks. Everything else works without this file.
"use strict";

const spots = document.querySelectorAll("[data-live]");

function show(figures) {
  for (const spot of spots) {
    const value = figures[spot.dataset.live];
    if (value === undefined) continue;
    const text = typeof value === "number" ? value.toLocaleString("en").replaceAll(",", "\u202f") : String(value);
    if (spot.textContent === text) continue;
    spot.textContent = text;
    spot.classList.remove("changed");
    void spot.offsetWidth; // so that the animation begins anew
    spot.classList.add("changed");
  }
}

function listen() {
  const source = new EventSource(document.body.dataset.liveFrom);
  source.addEventListener("figures", (event) => show(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    // A connection that broke is opened again by the browser; one that was refused is not.
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
  });
}

if (spots.length) listen();
