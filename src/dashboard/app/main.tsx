/**
 * The dashboard: the sign-in screen, or the screens.
 *
 * @module
 */
import { render } from "preact";
import { lazy, LocationProvider, Route, Router } from "preact-iso";
import { signIn } from "./api.ts";
import { Compare } from "./pages/compare.tsx";
import { OpenById } from "./pages/open-by-id.tsx";
import { Find } from "./pages/find.tsx";
import { Memories } from "./pages/memories.tsx";
import { NotFound } from "./pages/not-found.tsx";
import { Session } from "./pages/session.tsx";
import { Overview } from "./pages/overview.tsx";
import { Sessions } from "./pages/sessions.tsx";
import { SignIn } from "./pages/sign-in.tsx";
import { key, keyOfAnotherTab, keyOfLink } from "./session.ts";
import { Traces } from "./pages/traces.tsx";
import { Shell } from "./shell.tsx";

const Settings = lazy(() => import("./pages/settings.tsx"));
const Webhooks = lazy(() => import("./pages/webhooks.tsx"));
const Webhook = lazy(() => import("./pages/webhook.tsx"));
const Users = lazy(() => import("./pages/users.tsx"));
const User = lazy(() => import("./pages/user.tsx"));
const Backups = lazy(() => import("./pages/backups.tsx"));
const Authorize = lazy(() => import("./pages/authorize.tsx"));
const Keys = lazy(() => import("./pages/keys.tsx"));

/** @param refused - why a sign-in link did not work */
function Dashboard({ refused }: { refused: Error | null }) {
  if (key.value === null) return <SignIn refused={refused} />;
  return (
    <LocationProvider scope="/dashboard">
      <Shell>
        <Router>
          <Route path="/dashboard/" component={Overview} />
          <Route path="/dashboard/sessions" component={Sessions} />
          <Route path="/dashboard/sessions/:id" component={Session} />
          <Route path="/dashboard/compare" component={Compare} />
          <Route path="/dashboard/memories" component={Memories} />
          <Route path="/dashboard/find" component={Find} />
          <Route path="/dashboard/traces" component={Traces} />
          <Route path="/dashboard/keys" component={Keys} />
          <Route path="/dashboard/go/:id" component={OpenById} />
          <Route path="/dashboard/settings" component={Settings} />
          <Route path="/dashboard/webhooks" component={Webhooks} />
          <Route path="/dashboard/webhooks/:id" component={Webhook} />
          <Route path="/dashboard/users" component={Users} />
          <Route path="/dashboard/users/:id" component={User} />
          <Route path="/dashboard/backups" component={Backups} />
          <Route path="/dashboard/authorize" component={Authorize} />
          <Route default component={NotFound} />
        </Router>
      </Shell>
    </LocationProvider>
  );
}

async function start(): Promise<void> {
  let refused: Error | null = null;
  const linked = keyOfLink();
  if (linked === null && key.value === null) await keyOfAnotherTab();
  // A new link is a wish to be who it says, and ends who was signed in before.
  if (linked !== null) await signIn(linked).catch((error: Error) => (refused = error));
  render(<Dashboard refused={refused} />, document.getElementById("app") as HTMLElement);
}

void start();
