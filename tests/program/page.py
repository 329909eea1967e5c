#!/usr/bin/env python3
"""page.py URL PID: looks at the page of a run in headless Chromium, as page_test.cc has started it.

Chromium is driven by the DevTools protocol over its pipe (--remote-debugging-pipe: JSON texts that end with a zero byte
on descriptors 3 and 4), so that nothing but Chromium and Python is needed. Prints what is wrong, and exits with 1.
With PENSTOCK_SCREENSHOTS=FOLDER, pictures of the page go there.
"""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="penstock-chromium-")
        commands, self.to = os.pipe()
        self.answers, results = os.pipe()

        def give_pipes():
            os.dup2(commands, 13)  # first out of the way of 3 and 4
            os.dup2(results, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)

        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir=" + self.profile, "about:blank"]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(["chromium", *options], preexec_fn=give_pipes, close_fds=False, stdout=quiet,
                                        stderr=quiet)
        os.close(commands)
        os.close(results)
        self.received, self.last, self.events = b"", 0, []
        pages = [one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page"]
        self.session = self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.do(domain + ".enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, session=None, **parameters):
        self.last += 1
        request = {"id": self.last, "method": method, "params": parameters}
        if session:
            request["sessionId"] = session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        while True:
            while b"\0" not in self.received:
                more = os.read(self.answers, 1 << 16)
                if not more:
                    sys.exit("chromium has ended")
                self.received += more
            text, self.received = self.received.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") != self.last:
                self.events.append(answer)
            elif "error" in answer:
                sys.exit(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def do(self, method, **parameters):
        return self.call(method, self.session, **parameters)

    def value(self, expression):
        return self.do("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def becomes(self, expression, seconds=20.0):
        """Whether the expression becomes true in this time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.value(expression):
                return True
            time.sleep(0.1)
        return False

    def look(self, width, scheme, what=""):
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        self.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        time.sleep(1.5)  # the page draws again with the next answer
        if folder := os.environ.get("PENSTOCK_SCREENSHOTS"):
            height = self.value("document.documentElement.scrollHeight")
            clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
            picture = self.do("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
            with open(os.path.join(folder, f"page-{width}-{scheme}{what}.png"), "wb") as file:
                file.write(base64.b64decode(picture["data"]))

    def press_tab(self):
        for kind in ("rawKeyDown", "keyUp"):
            self.do("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)


# What a run on a GPU adds to the answers (src/report/run_report.cc, src/control/live_status.cc), growing with time.
ON_A_GPU = """{
const ask = window.fetch;
window.fetch = async (...request) => {
  const answer = await ask(...request);
  if (!String(request[0]).endsWith('/api/status')) return answer;
  const status = await answer.json();
  const s = status.elapsed_s;
  status.processor = status.report.processor = 'gpu';
  for (const placed of status.plan.functions) placed.processor = 'gpu';
  status.report.pcie = {to_device_bytes: 25e6 * s, to_host_bytes: 2.5e6 * s};
  status.report.gpu = {devices: ['NVIDIA H100'], shares: [], segments: 4000 * s, punted: 1000 * s, failures: 0,
                       lanes_lost: 0, memory_bytes: 3221225472, most_memory_bytes: 3221225472};
  status.gpu_use = [{gpu: 0, busy: 0.375}];
  return new Response(JSON.stringify(status), {headers: {'Content-Type': 'application/json'}});
};
}"""


def check_gpu(page, url, complain):
    if page.value("!document.querySelector('#gpu').hidden"):
        complain("figures of a GPU, and the run has none")
    script = page.do("Page.addScriptToEvaluateOnNewDocument", source=ON_A_GPU)["identifier"]
    page.do("Page.navigate", url=url)
    expected = ("GPU 0 busy\n37.5 %", "to the GPU\n200 Mbit/s", "from the GPU\n20 Mbit/s", "memory\n3.22 GB", "segments\n4 k/s",
                "packets left to the CPU\n1 k/s", "failed segments\n0")
    if not page.becomes("document.querySelector('#gpu-facts')?.innerText.includes('Mbit/s')"):
        return complain("the page shows nothing of a GPU")
    for width in (1280, 400):
        page.look(width, "light", "-gpu")
        wide = page.value("document.documentElement.scrollWidth")
        if wide > width:
            complain(f"with a GPU, at {width} pixels, the page is {wide} wide")
    text = page.value("document.querySelector('#gpu-facts').innerText")
    for part in expected:
        if part not in text:
            complain(f"of the GPU, the page does not say {part!r}: {text!r}")
    if not page.value("document.querySelector('#machine').textContent").startswith("GPU"):
        complain("the page does not say that the chain is on a GPU")
    page.do("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    page.do("Page.navigate", url=url)
    page.becomes("/[1-9]/.test(document.querySelector('#in-packets')?.textContent ?? '')")


def check(page, url, run, complain):
    page.do("Page.navigate", url=url)
    if not page.becomes("/[1-9]/.test(document.querySelector('#in-packets')?.textContent ?? '')"):
        return complain("no rate appears: " + str(page.value("document.body.innerText")))

    colours = []
    for width in (1280, 400):
        for scheme in ("light", "dark"):
            page.look(width, scheme)
            colours.append(page.value("getComputedStyle(document.documentElement).backgroundColor"))
            wide = page.value("document.documentElement.scrollWidth")
            if wide > width:
                complain(f"at {width} pixels, the page is {wide} wide")
            for name in ("lan", "wan", "firewall", "firewall#2", "filter"):
                if not page.value(f"[...document.querySelectorAll('#picture text')].some(t => t.textContent === {name!r})"):
                    complain(f"at {width} pixels, the picture has no {name}")
            cut = page.value("[...document.querySelectorAll('#picture svg')].some(svg => [...svg.querySelectorAll('rect, text')]"
                             ".some(e => e.getBBox().x < 0 || e.getBBox().x + e.getBBox().width > svg.viewBox.baseVal.width"
                             " || e.getBBox().y < 0 || e.getBBox().y + e.getBBox().height > svg.viewBox.baseVal.height))")
            if cut:
                complain(f"at {width} pixels, the picture is cut off")
    if len(set(colours)) != 2:
        complain(f"dark and light look the same: {colours}")

    text = page.value("document.body.innerText")
    for expected in ("running", "denied", "worker", "<img src=x onerror=alert(1)>"):
        if expected not in text:
            complain(f"the page does not say {expected!r}")
    if page.value("document.querySelectorAll('li img, td img').length"):
        complain("a rule's text was taken for HTML")

    reached = set()
    for _ in range(12):
        page.press_tab()
        reached.add(page.value("document.activeElement.id || document.activeElement.getAttribute('aria-labelledby') ||"
                               " document.activeElement.getAttribute('href')"))
    for expected in ("picture", "functions-title", "ports-title", "/metrics"):
        if expected not in reached:
            complain(f"the Tab key does not reach {expected}: {reached}")

    check_gpu(page, url, complain)

    silent = "!document.querySelector('#silence').hidden && document.title.startsWith('No answer')"
    if page.value(silent):
        complain("the page says that the run does not answer, and it does")
    os.kill(run, signal.SIGSTOP)
    if not page.becomes(silent):
        complain("the page does not say that the run has stopped answering")
    page.look(1280, "light")
    os.kill(run, signal.SIGCONT)
    if not page.becomes("document.querySelector('#silence').hidden"):
        complain("the page does not see that the run answers again")
    os.kill(run, signal.SIGKILL)
    if not page.becomes(silent):
        complain("the page does not say that the run has ended")

    for event in page.events:
        what, about = event["method"], event["params"]
        if what == "Runtime.exceptionThrown" or (what == "Runtime.consoleAPICalled" and about["type"] == "error"):
            complain(f"an error in the page: {json.dumps(about)[:600]}")
        if what == "Log.entryAdded" and about["entry"]["source"] == "security":
            complain(f"against the policy: {about['entry']['text']}")
        if what == "Network.requestWillBeSent" and not about["request"]["url"].startswith(url):
            complain(f"asks for {about['request']['url']}")


def main():
    url, run = sys.argv[1], int(sys.argv[2])
    complaints = []
    page = Browser()
    try:
        check(page, url, run, complaints.append)
    finally:
        page.close()
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


sys.exit(main())
