/* Search when a page is opened from the disk. Browsers refuse workers on file:// addresses, so the search script runs in a
   hidden frame instead, with the few functions of a worker that it uses. */
(function () {
  if (location.protocol !== "file:") return;
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.onmessage = this.onerror = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      const base = new URL(address, document.baseURI);
      const load = (url) => new Promise((done, failed) => {
        const script = inside.document.createElement("script");
        script.src = new URL(url, base);
        script.onload = done;
        script.onerror = failed;
        inside.document.head.appendChild(script);
      });
      inside.importScripts = (...urls) => urls.reduce((before, url) => before.then(() => load(url)), Promise.resolve());
      inside.postMessage = (data) => this.answer(data);
      this.ready = load(base);
    }
    answer(data) {
      const event = new MessageEvent("message", { data });
      if (this.onmessage) this.onmessage(event);
      this.dispatchEvent(event);
    }
    postMessage(data) {
      const send = () => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
      this.ready.then(send);
    }
    terminate() { this.frame.remove(); }
  };
})();
