/**
 * OAuth on the wire, as far as the dashboard speaks it: requests of applications, and consent.
 *
 * @module
 */
import { Type, type Static } from "@sinclair/typebox";
import { Default, NeverNull, OneOf, OrNull, Text, UserId } from "../http/types.ts";
import { ApiKey } from "../keys/schema.ts";
import { LIMITS } from "../lib/limits.ts";
import { CLIENT_ID_LENGTH_MAX, register } from "./clients.ts";
import { OAUTH_SCOPES } from "./issuer.ts";
import { URI_LENGTH_MAX } from "./redirects.ts";

const registered = register({ client_name: "Notes", redirect_uris: ["https://notes.example.com/callback"] });
/** A registration is its own id: this one is valid everywhere. */
const EXAMPLE_ID = "client" in registered ? registered.client.id : "";
const EXAMPLE_CALLBACK = "https://notes.example.com/callback";
const STATE_LENGTH_MAX = 2048;

const asked = {
  client_id: Text(1, CLIENT_ID_LENGTH_MAX, {
    description: "URL of the application's document, or the id of its registration.",
    examples: [EXAMPLE_ID],
  }),
  redirect_uri: Text(1, URI_LENGTH_MAX, { description: "Where the application waits for the answer.", examples: [EXAMPLE_CALLBACK] }),
  response_type: Text(1, 32, { description: "`code`.", examples: ["code"] }),
  code_challenge: Text(1, 128, {
    description: "PKCE: base64url of the SHA-256 of the verifier.",
    examples: ["E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"],
  }),
  code_challenge_method: Text(1, 16, { description: "`S256`.", examples: ["S256"] }),
  scope: Type.Optional(
    Text(0, 1024, {
      description: "`read`, `write`, `offline_access`; others are ignored. Default `read write`.",
      examples: ["read write"],
    }),
  ),
  state: Type.Optional(Text(0, STATE_LENGTH_MAX, { description: "Given back to the application.", examples: ["af0ifjsldkj"] })),
  resource: Text(1, URI_LENGTH_MAX, { description: "URL of `/mcp` of this server.", examples: ["http://127.0.0.1:8700/mcp"] }),
};

export const OAuthAsked = Type.Object(asked, {
  title: "OAuthAsked",
  description: "The parameters that an application sent to `/authorize`.",
});

const scopes = Type.Array(OneOf(OAUTH_SCOPES), { minItems: 1, maxItems: OAUTH_SCOPES.length, examples: [["read", "write"]] });

export const OAuthConsent = Type.Object(
  {
    ...asked,
    scopes: Type.Optional({ ...scopes, description: "Those that it gets, of those that it asked for; default all." }),
    user_id: NeverNull(
      UserId({ description: "Binds the application to the records of this user." }),
      "leave it out for the records of all users.",
    ),
    agent_id: NeverNull(
      Text(1, LIMITS.agentIdLengthMax, { description: "Binds the application to the records of this agent." }),
      "leave it out for the records of all agents.",
    ),
    expires_in_days: Default(
      Type.Integer({
        minimum: 1,
        maximum: LIMITS.oauthGrantDaysMax,
        description: `How long the application stays connected at most; default ${LIMITS.oauthGrantDaysDefault}. Unused for 30 days, it ends.`,
        examples: [LIMITS.oauthGrantDaysDefault],
      }),
      LIMITS.oauthGrantDaysDefault,
    ),
  },
  { title: "OAuthConsent", description: "What an application asked for, and what it gets." },
);

export const OAuthRequest = Type.Object(
  {
    object: Type.Literal("oauth_request"),
    client_id: Type.String({ examples: [EXAMPLE_ID] }),
    client_name: Type.String({ description: "The name that the application gives itself.", examples: ["Notes"] }),
    client_host: OrNull(
      Type.String({ description: "Host of its document; null for a registration, which anybody can make under any name." }),
    ),
    redirect_host: Type.String({ description: "Host that gets the answer.", examples: ["notes.example.com"] }),
    redirects_to_this_machine: Type.Boolean({
      description: "Whether any program on the machine of the browser could be that host.",
      examples: [false],
    }),
    resource: Type.String({ examples: ["http://127.0.0.1:8700/mcp"] }),
    scopes,
    refreshes: Type.Boolean({ description: "Whether it stays connected for longer than an hour.", examples: [false] }),
    denial: Type.String({
      description: "Where to send the browser if the answer is no.",
      examples: [`${EXAMPLE_CALLBACK}?error=access_denied`],
    }),
  },
  { title: "OAuthRequest", description: "An application that asks for access." },
);
export type OAuthRequest = Static<typeof OAuthRequest>;

export const OAuthGrant = Type.Object(
  {
    object: Type.Literal("oauth_grant"),
    key: ApiKey,
    redirect_to: Type.String({
      description: "Where to send the browser: it has the code, which is good for a minute, once.",
      examples: [`${EXAMPLE_CALLBACK}?code=crn_ac_…&state=af0ifjsldkj&iss=http%3A%2F%2F127.0.0.1%3A8700`],
    }),
  },
  { title: "OAuthGrant", description: "An application that was connected." },
);
export type OAuthGrant = Static<typeof OAuthGrant>;
