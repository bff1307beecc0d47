/**
 * A path of the dashboard that has no screen.
 *
 * @module
 */
import { Page } from "../parts/page.tsx";

export function NotFound() {
  return (
    <Page title="Nothing here">
      <p>
        There is no such screen. <a href="/dashboard/">Back to overview</a>
      </p>
    </Page>
  );
}
