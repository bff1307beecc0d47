/**
 * A real browser on the dashboard: Chromium, driven by Bun. One for all tests of a process, which ends with it; each test has tabs
 * of its own.
 *
 * @module
 */
import axe from "axe-core";
import { chromium } from "./chromium.ts";
import { until, type CairnProcess } from "./process.ts";

export const WIDE = 1280;
export const NARROW = 360;
const HEIGHT = 900;

/** Elements that a person would call by this name: what is written on a button, a link or beside a field. */
const NAMED = `(name) => {
  const text = (element) => (element?.textContent ?? "").replace(/\\s+/g, " ").trim();
  const named = (element) => element.getAttribute("aria-label") === name || text(element) === name || element.placeholder === name;
  const shown = (element) => element.checkVisibility() && element.closest("[inert]") === null;
  const inside = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document;
  const controls = [...inside.querySelectorAll("button, a, summary, input, textarea, select")].filter(shown);
  const labels = [...inside.querySelectorAll("label")].filter((label) => {
    const own = [...label.childNodes].filter((node) => !(node instanceof Element && node.matches("input, textarea, select, output")));
    return own.map((node) => node.textContent).join("").trim() === name;
  });
  return labels.map((label) => label.control).find((control) => control !== null && shown(control)) ?? controls.find(named);
}`;

/** Notes the field that is filled, and that text has come into it, for the time after that. */
const NOTED = `window.filled = one; window.wasTyped = false;
  one.oninput = () => { window.wasTyped = true; };
  one.select?.();`;

/** How Chromium refuses an expression whose page is left for another one before the value is there. */
const PAGE_LEFT = /navigated or closed|context was destroyed|cannot find .*context/i;

function orPageLeft(error: unknown): false {
  if (error instanceof Error && PAGE_LEFT.test(error.message)) return false;
  throw error;
}

const naming = (name: string, within = "") => `"${name}" to click or fill ${within}`;

/**
 * An expression that focuses a control and does something with it in the same step, and says whether it is there.
 *
 * @param then - statements about `one`
 */
function onControl(name: string, within = "", then = ""): string {
  const scope =
    within === ""
      ? `(${NAMED})`
      : `((name) => [...document.querySelectorAll(${JSON.stringify(within)})].flatMap((part) =>
      [...part.querySelectorAll("button, a, summary, input")]).find((one) => (one.getAttribute("aria-label") ?? one.textContent.trim()) === name))`;
  // A dialog that was closed gives the focus back when it goes.
  return `(() => {
    if (document.querySelector("dialog:not([open])") !== null) return false;
    const one = ${scope}(${JSON.stringify(name)});
    one?.focus();
    if (one === undefined || one.disabled) return false;
    ${then}
    return true;
  })()`;
}

export class Tab implements Disposable {
  readonly #view: Bun.WebView;
  /** What the page or the browser complained about: refused by the policy, uncaught, written to the console. */
  readonly complaints: string[] = [];
  /** Every request of the page: its address, and how the answer was encoded. */
  readonly requests: { url: string; encoding: string | undefined }[] = [];

  constructor(path: string) {
    this.#view = new Bun.WebView({
      width: WIDE,
      height: HEIGHT,
      // The sandbox wants rights that a container seldom has. The pages are ours.
      backend: { type: "chrome", url: false, path, argv: ["--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"] },
    });
  }

  async open(): Promise<this> {
    // The protocol is there from the first navigation on, and the size in the constructor is that of the window.
    await this.#view.navigate("about:blank");
    await this.resize(WIDE);
    for (const domain of ["Log", "Runtime", "Network"]) await this.#view.cdp(`${domain}.enable`);
    await this.#view.cdp("Browser.grantPermissions", { permissions: ["clipboardReadWrite", "clipboardSanitizedWrite"] });
    this.#view.addEventListener<{ entry: { level: string; text: string; url?: string } }>("Log.entryAdded", ({ data: { entry } }) => {
      if (entry.level === "error" || entry.level === "warning") this.complaints.push([entry.text, entry.url].filter(Boolean).join(" "));
    });
    this.#view.addEventListener<{ type: string; args: { value?: unknown }[] }>("Runtime.consoleAPICalled", ({ data }) => {
      this.complaints.push(`${data.type}: ${data.args.map(({ value }) => String(value)).join(" ")}`);
    });
    this.#view.addEventListener<{ exceptionDetails: { exception?: { description?: string } } }>("Runtime.exceptionThrown", ({ data }) => {
      this.complaints.push(data.exceptionDetails.exception?.description ?? "uncaught");
    });
    this.#view.addEventListener<{ response: { url: string; headers: Record<string, string> } }>("Network.responseReceived", ({ data }) => {
      const encoding = new Headers(data.response.headers).get("content-encoding") ?? undefined;
      if (data.response.url.startsWith("http")) this.requests.push({ url: data.response.url, encoding });
    });
    return this;
  }

  /** Leaves the page first: `navigate` waits for ever when only the fragment is another one. */
  async go(address: string): Promise<void> {
    await this.#view.navigate("about:blank");
    await this.#view.navigate(address);
  }

  async reload(): Promise<void> {
    await this.#view.reload();
  }

  /** `goBack` waits for ever for a navigation within the page. */
  async back(): Promise<void> {
    await this.#leave("history.back()");
  }

  /** Evaluates an expression in the page. Its value comes as JSON. */
  run<Value>(expression: string): Promise<Value> {
    return this.#view.evaluate<Value>(expression);
  }

  /** Evaluates what may leave the page, so that no value comes. */
  async #leave(expression: string): Promise<void> {
    await this.run(`(${expression}, true)`).catch(orPageLeft);
  }

  /** Waits for a text to be visible. While the page changes for another one it has no body. */
  async sees(text: string): Promise<void> {
    await this.#until(`"${text}"`, `document.body?.innerText.includes(${JSON.stringify(text)})`);
  }

  /** The same, wherever its lines end and however far its words stand apart. */
  async seesFlat(text: string): Promise<void> {
    await this.#until(`"${text}"`, `document.body?.innerText.replace(/\\s+/g, " ").includes(${JSON.stringify(text)})`);
  }

  async seesNo(text: string): Promise<void> {
    await this.#until(`no "${text}"`, `document.body !== null && !document.body.innerText.includes(${JSON.stringify(text)})`);
  }

  /** Waits for an element that matches. */
  async has(selector: string): Promise<void> {
    await this.#until(selector, `document.querySelector(${JSON.stringify(selector)}) !== null`);
  }

  /** Waits for an expression to hold. */
  async holds(expression: string): Promise<void> {
    await this.#until(expression, expression);
  }

  async #until(what: string, check: string | (() => Promise<boolean>)): Promise<void> {
    const holds = typeof check === "string" ? () => this.run<boolean>(`Boolean(${check})`).catch(orPageLeft) : check;
    try {
      await until(what, holds);
    } catch (error) {
      const shown = await this.run<string>(`document.body?.innerText ?? ""`).catch(orPageLeft);
      throw new Error(`${(error as Error).message}; the page says:\n${shown}\n${this.complaints.join("\n")}`, { cause: error });
    }
  }

  /** Clicks on a button, link or field by its name, in the dialog that is open if there is one. */
  async click(name: string, within = ""): Promise<void> {
    await this.#until(naming(name, within), async () => {
      if (!(await this.run<boolean>(onControl(name, within)).catch(orPageLeft))) return false;
      // Found again and clicked in one step: the page may move the focus at any time. A page that is left was clicked.
      return this.run<boolean>(onControl(name, within, "one.click();")).catch((error: unknown) => !orPageLeft(error));
    });
  }

  /** Writes into a field by its label, in place of what it held. */
  async fill(name: string, text: string): Promise<void> {
    await this.#until(naming(name), async () => {
      if (!(await this.run<boolean>(onControl(name, "", NOTED)).catch(orPageLeft))) return false;
      if (text === "") await this.#view.press("Backspace");
      else await this.#view.type(text);
      // Written again where the page has moved the focus meanwhile; not where the text has made the page leave the field.
      return this.run<boolean>(`(() => {
        if (document.activeElement !== window.filled) return window.wasTyped && !window.filled.isConnected;
        window.filled.dispatchEvent(new Event("change", { bubbles: true }));
        return true;
      })()`);
    });
  }

  async choose(name: string, value: string): Promise<void> {
    const then = `one.value = ${JSON.stringify(value)};
      for (const type of ["input", "change"]) one.dispatchEvent(new Event(type, { bubbles: true }));`;
    await this.#until(naming(name), onControl(name, "", then));
  }

  /** Presses keys as a person does who has no mouse. */
  async press(...keys: string[]): Promise<void> {
    for (const key of keys) await this.#view.press(key);
  }

  async type(text: string): Promise<void> {
    await this.#view.type(text);
  }

  /** What has the focus, as a person would call it. */
  focused(): Promise<string> {
    return this.run<string>(`(() => {
      const element = document.activeElement;
      return element.getAttribute("aria-label") ?? element.labels?.[0]?.textContent ?? element.textContent.trim();
    })()`);
  }

  /** What the page has copied. */
  async clipboard(): Promise<string> {
    return this.run<string>("navigator.clipboard.readText()");
  }

  async resize(width: number, height = HEIGHT): Promise<void> {
    await this.#view.resize(width, height);
  }

  async scheme(scheme: "light" | "dark"): Promise<void> {
    await this.#view.cdp("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
    // Colours that fade into others are neither.
    await this.holds("document.getAnimations().every((one) => !(one instanceof CSSTransition))");
  }

  async reduceMotion(): Promise<void> {
    await this.#view.cdp("Emulation.setEmulatedMedia", { features: [{ name: "prefers-reduced-motion", value: "reduce" }] });
  }

  /** Has the pages to come believe that they came over plain HTTP from elsewhere; loopback is as safe as HTTPS. */
  async pretendInsecure(): Promise<void> {
    await this.#view.cdp("Page.enable");
    const source = `Object.defineProperty(window, "isSecureContext", { value: false })`;
    await this.#view.cdp("Page.addScriptToEvaluateOnNewDocument", { source });
  }

  /** What axe finds wrong with the page as it is: rule, element, and what to do. */
  async accessibilityProblems(): Promise<string[]> {
    if (!(await this.run<boolean>("'axe' in window"))) await this.#view.cdp("Runtime.evaluate", { expression: axe.source });
    return this.run<string[]>(
      `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], resultTypes: ["violations"] }).then(({ violations }) =>
        violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + " " + target + ": " + failureSummary)))`,
    );
  }

  /** Whether the page is wider than the window. */
  isTooWide(): Promise<boolean> {
    return this.run<boolean>("document.documentElement.scrollWidth > document.documentElement.clientWidth");
  }

  async picture(path: string, format: "png" | "webp" = "png"): Promise<void> {
    await Bun.write(path, await this.#view.screenshot({ format }));
  }

  [Symbol.dispose](): void {
    this.#view.close();
  }
}

export async function openTab(): Promise<Tab> {
  return new Tab(await chromium()).open();
}

/** Opens a tab that is signed in, at a path below `/dashboard`. */
export async function signedInTab(cairn: Pick<CairnProcess, "address" | "key">, path = "", key = cairn.key): Promise<Tab> {
  const tab = await openTab();
  await tab.go(`${cairn.address}/dashboard${path}`);
  await tab.fill("API key", key);
  await tab.click("Sign in");
  await tab.has("nav");
  return tab;
}
