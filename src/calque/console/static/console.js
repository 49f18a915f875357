// Figures that change while one looks, and files dropped on a folder. All else works without this file.
"use strict";

const spots = document.querySelectorAll("[data-live]");
const silence = document.getElementById("silence");
const PATIENCE = 10_000; // figures come every second
let overdue;

function show(figures) {
  expectMore();
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

// What stands still must not look as if nothing happened.
function expectMore() {
  silence.hidden = true;
  clearTimeout(overdue);
  overdue = setTimeout(() => { silence.hidden = false; }, PATIENCE);
}

// A connection that broke is opened again by the browser; one that was refused, or that says nothing
// any more (a machine without power), is not.
function listen(tell) {
  const source = new EventSource(document.body.dataset.liveFrom);
  const beginAnew = () => { source.close(); listen(tell); };
  let quiet = setTimeout(beginAnew, PATIENCE);
  source.addEventListener("figures", (event) => {
    clearTimeout(quiet);
    quiet = setTimeout(beginAnew, PATIENCE);
    tell(JSON.parse(event.data));
  });
}

// A browser opens six connections to a server at most: of all tabs one listens, and tells the others.
// Where locks are not offered (plain HTTP from another machine) each listens for itself.
function share() {
  const channel = new BroadcastChannel("calque-figures");
  channel.addEventListener("message", (event) => show(event.data));
  const lead = () =>
    new Promise(() => listen((figures) => { show(figures); channel.postMessage(figures); }));
  navigator.locks.request("calque-figures", lead); // held until this tab is closed
}

if (spots.length) {
  expectMore();
  navigator.locks ? share() : listen(show);
}

// Files dropped anywhere on the page of a folder are uploaded into it, as by its form.
const upload = document.querySelector("form[data-drop]");
const bringsFiles = (event) => upload && event.dataTransfer.types.includes("Files");

document.addEventListener("dragover", (event) => {
  if (!bringsFiles(event)) return;
  event.preventDefault(); // else the browser would open the file in place of the page
  upload.classList.add("changed");
});
document.addEventListener("drop", (event) => {
  if (!bringsFiles(event)) return;
  event.preventDefault();
  upload.elements.namedItem("file").files = event.dataTransfer.files;
  upload.requestSubmit();
});
