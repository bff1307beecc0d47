/**
 * The frame of a screen: title, the way back, actions. A screen that is opened takes the focus to its heading, as a page that
 * loads does.
 *
 * @module
 */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface PageProps {
  /** For the window, and for the heading unless that has one of its own. */
  title: string;
  heading?: ComponentChildren;
  /** Place of this screen: path and name. */
  within?: readonly [href: string, name: string];
  actions?: ComponentChildren;
  children: ComponentChildren;
}

export function Page({ title, heading, within, actions, children }: PageProps) {
  const element = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Cairn`;
  }, [title]);
  useEffect(() => {
    // The first screen leaves the focus where the browser has it, and so does one whose field asks for it.
    if (pagesOpened++ > 0 && document.activeElement === document.body) element.current?.focus();
  }, []);
  return (
    <main id="main">
      <div class="head">
        <h1 ref={element} tabIndex={-1}>
          {within !== undefined && (
            <>
              <a href={within[0]}>{within[1]}</a>
              <span class="quiet" aria-hidden="true">
                {" › "}
              </span>
            </>
          )}
          {heading ?? title}
        </h1>
        {actions !== undefined && <div class="row actions">{actions}</div>}
      </div>
      {children}
    </main>
  );
}

let pagesOpened = 0;
