// Search from disk: a page that was opened as a file may not start a worker, so the worker's script runs in a frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.onmessage = null;
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inside = frame.contentWindow;
      const worker = this;
      this.inside.postOut = (data) => {
        const event = new MessageEvent("message", { data });
        worker.dispatchEvent(event);
        if (worker.onmessage) worker.onmessage(event);
      };
      const script = (source) =>
        new Promise((loaded, failed) => {
          const element = this.inside.document.createElement("script");
          element.src = source;
          element.onload = loaded;
          element.onerror = () => failed(new Error(`cannot load ${source}`));
          this.inside.document.body.appendChild(element);
        });
      // In a worker `postMessage` goes out; in the frame it must not reach the frame itself.
      this.inside.postMessage = this.inside.postOut;
      this.inside.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => script(source)), Promise.resolve());
      this.inside.document.open();
      this.inside.document.write("<!doctype html><body></body>");
      this.inside.document.close();
      this.ready = script(address).then(() => {
        const held = this.waiting;
        this.waiting = null;
        held.forEach((data) => this.postMessage(data));
      });
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }));
    }
    terminate() {}
  };
}
