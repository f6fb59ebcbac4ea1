"""Uses a page in headless Chromium, over DevTools on a pipe: CHROMIUM PAGE WHAT [SCREENSHOTS].

Prints what was seen as JSON. Any script error, dialog or network request is an error.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile


class Browser:
    def __init__(self, chromium, profile):
        self.seen, self.ids, self.trouble = [], 0, []
        to_read, self.to = os.pipe()
        self.come, to_write = os.pipe()

        def fds():
            # DevTools reads from 3 and writes to 4.
            os.dup2(to_read, 103)
            os.dup2(to_write, 104)
            os.dup2(103, 3)
            os.dup2(104, 4)

        arguments = ["--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
                     "--disable-background-networking", "--hide-scrollbars", f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen([chromium, *arguments], preexec_fn=fds, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.rest = b""
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def message(self):
        while b"\0" not in self.rest:
            chunk = os.read(self.come, 1 << 20)
            if not chunk:
                sys.exit("the browser ended")
            self.rest += chunk
        text, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(text)
        method = message.get("method", "")
        if method in ("Page.javascriptDialogOpening", "Runtime.exceptionThrown"):
            self.trouble.append(message)
            if "Dialog" in method:
                self.send("Page.handleJavaScriptDialog", accept=True)
        if method == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.trouble.append(message)
        if method == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            if not url.startswith(("file:", "about:", "data:")):
                self.trouble.append(url)
        return message

    def send(self, method, **parameters):
        self.ids += 1
        message = {"id": self.ids, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        return self.ids

    def call(self, method, **parameters):
        number = self.send(method, **parameters)
        while True:
            message = self.message()
            if message.get("id") == number:
                if "error" in message:
                    sys.exit(f"{method}: {message['error']}")
                return message["result"]

    def open(self, url, width=1280, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        # From another page: a change of the fragment alone loads nothing.
        for to in ("about:blank", url):
            self.call("Page.navigate", url=to)
            while self.message().get("method") != "Page.loadEventFired":
                pass

    def js(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            sys.exit(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def box(self, selector):
        return self.js(f"(({{left, top, width, height}}) => ({{left, top, width, height}}))"
                       f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())")

    def mouse(self, kind, x, y, buttons=1):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=buttons, clickCount=1)

    def drag(self, selector, start, end):
        box = self.box(selector)
        y = box["top"] + box["height"] / 2
        x = lambda share: box["left"] + share * box["width"]
        self.mouse("mousePressed", x(start), y)
        for step in range(1, 6):
            self.mouse("mouseMoved", x(start + (end - start) * step / 5), y)
        self.mouse("mouseReleased", x(end), y, 0)

    def click(self, selector):
        self.js(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        box = self.box(selector)
        x, y = box["left"] + box["width"] / 2, box["top"] + box["height"] / 2
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y, 0)

    def key(self, key, modifiers=0):
        code = {"Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Enter": 13}.get(key, 0)
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, modifiers=modifiers)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def status(self):
        # What a move of the pointer changed is drawn with the next picture.
        self.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        exact = self.js("(document.querySelector('#status b') || {title: ''}).title")
        return {"text": self.js("document.querySelector('#status').textContent"),
                "bytes": int("".join(filter(str.isdigit, exact)) or 0)}

    def shot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        try:
            self.session = None
            self.send("Browser.close")
            self.process.wait(timeout=20)
        finally:
            self.process.kill()


def use(browser, url):
    seen = {}
    browser.open(url)
    seen["start"] = browser.status()
    seen["frames"] = browser.js("document.querySelectorAll('.frame').length")
    browser.drag("#timeline", 0.25, 0.5)
    seen["window"] = browser.status()
    seen["bounds"] = browser.js("new URLSearchParams(location.hash.slice(1)).get('window')")
    browser.js("document.querySelector('#timeline').focus()")
    browser.key("ArrowRight")
    browser.status()
    seen["moved"] = browser.js("new URLSearchParams(location.hash.slice(1)).get('window')")
    browser.key("ArrowRight", 8)
    browser.status()
    seen["wider"] = browser.js("new URLSearchParams(location.hash.slice(1)).get('window')")
    browser.key("Escape")
    seen["cleared"] = browser.status()
    browser.click("[name=weight][value=blocks] + span")
    seen["blocks"] = browser.status()
    browser.click("[name=weight][value=bytes] + span")
    browser.js("document.querySelector('#search').focus()")
    browser.type("torch/nn/.*container")
    seen["found"] = browser.status()
    seen["hits"] = browser.js("document.querySelectorAll('.frame.hit').length")
    seen["rows"] = browser.js("document.querySelectorAll('#sites tr').length")
    browser.js("document.querySelector('#search').value = ''")
    browser.js("document.querySelector('#search').focus()")
    browser.type("(")
    seen["wrong"] = browser.js("document.querySelector('#search').className")
    browser.click("#reset")
    browser.js("document.querySelector('.frame').focus()")
    browser.key("ArrowDown")
    seen["focus"] = browser.js("document.activeElement.textContent")
    browser.key("Enter")
    seen["zoomed"] = browser.js("document.activeElement.style.width")
    seen["shown"] = browser.status()["text"]
    browser.key("Escape")
    seen["unzoomed"] = browser.status()["text"]
    before = browser.js("document.documentElement.dataset.theme")
    browser.click("#theme")
    seen["themes"] = [before, browser.js("document.documentElement.dataset.theme")]
    return seen


def hostile(browser, url):
    browser.open(url)
    return {
        "start": browser.status(),
        # What the names would have brought in had they been taken for markup.
        "foreign": browser.js("document.querySelectorAll('img, iframe, [onload], [onerror], #graph script, #graph svg, td script, b b').length"),
        "scripts": browser.js("document.scripts.length"),
        "labels": browser.js("[...document.querySelectorAll('.frame')].map((f) => f.getAttribute('aria-label')).sort()"),
        "sites": browser.js("[...document.querySelectorAll('#sites button')].map((f) => f.textContent).sort()"),
        "title": browser.js("document.title"),
        "subtitle": browser.js("document.querySelector('#subtitle').textContent"),
    }


def parts(browser, url):
    browser.open(url)
    seen = []
    for part in range(browser.js("document.querySelector('#part').options.length")):
        browser.open(f"{url}#part={part}")
        seen.append(browser.status())
    return {"parts": seen}


def picture(browser, url):
    browser.open(url)
    return {
        "root": browser.js("document.documentElement.tagName"),
        "foreign": browser.js("[...document.querySelectorAll('*')].filter((e) => !['svg','g','rect','text','title','defs','linearGradient','stop','style','script','a'].includes(e.localName)).map((e) => e.localName)"),
        "scripts": browser.js("document.querySelectorAll('script').length"),
        "titles": browser.js("[...document.querySelectorAll('#frames title')].map((e) => e.textContent)"),
    }


def main():
    chromium, page, what, *shots = sys.argv[1:]
    url = "file://" + os.path.abspath(page)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(chromium, profile)
        try:
            seen = {"use": use, "hostile": hostile, "picture": picture, "parts": parts}[what](browser, url)
            for folder in shots:
                for theme in ("light", "dark"):
                    for width, height in ((1280, 900), (640, 900)):
                        browser.open(f"{url}#theme={theme}&window=100-260&find=container", width, height)
                        browser.shot(os.path.join(folder, f"{theme}-{width}.png"))
            seen["trouble"] = browser.trouble
        finally:
            browser.close()
    print(json.dumps(seen))


main()
