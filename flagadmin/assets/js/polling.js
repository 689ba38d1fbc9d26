// data-poll: asked every two seconds, while the page is visible, at the address in its element with data-news. What comes
// replaces its content, and says where to ask next; 204 is no news.
import { find, onEach } from "./dom.js";

const PAUSE = 2000;
const MAX_TIME = 30 * 60 * 1000; // after which nobody is waiting any more

async function ask(element, address) {
  const answer = await fetch(address);
  if (answer.status === 204 || !element.isConnected) return true;
  if (!answer.ok || answer.redirected) return false; // to the login page
  htmx.swap(element, await answer.text(), { swapStyle: htmx.config.defaultSwapStyle });
  return true;
}

const visible = () =>
  new Promise((resolve) => {
    const look = () => {
      if (document.hidden) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    look();
  });

async function poll(element) {
  const end = Date.now() + MAX_TIME;
  for (let goOn = true; goOn && element.isConnected && Date.now() < end; ) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    await visible();
    const news = find("[data-news]", element);
    if (!news) return;
    goOn = await ask(element, news.dataset.news).catch(() => true); // the server may be back in two seconds
  }
}

onEach("[data-poll]", poll);
onEach("[data-poll] [data-replaced]", (link) => { link.parentNode.textContent = "Checks every 2 s"; });
