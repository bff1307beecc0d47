/**
 * Reason why a database cannot be opened, in the words of an operator. Never says its password.
 *
 * @module
 */
import { messageOf } from "../../../lib/errors.ts";
import { placeOfDatabase } from "./database-url.ts";
import { DatabaseError } from "./database.ts";

/** Error of the driver for a connection that it could not make. */
const UNREACHABLE = ["ERR_POSTGRES_CONNECTION_REFUSED", "ERR_POSTGRES_CONNECTION_TIMEOUT", "ERR_POSTGRES_CONNECTION_CLOSED"];
const WITHOUT_TLS = "ERR_POSTGRES_TLS_NOT_AVAILABLE";
/** Codes of OpenSSL: `DEPTH_ZERO_SELF_SIGNED_CERT`, `ERR_TLS_CERT_ALTNAME_INVALID`. */
const OF_CERTIFICATE = /CERT|ISSUER|SIGNATURE/;

export function openingProblem(error: unknown, url: string): string {
  const { host, sslMode } = placeOfDatabase(url);
  const cause = error instanceof DatabaseError ? error.cause : error;
  const code = String((cause as { code?: unknown }).code);
  const says = messageOf(cause).replace(/\.$/, "");
  if (UNREACHABLE.includes(code)) return `No database answers at ${host}: is it running, and may this machine reach it?`;
  if (code === WITHOUT_TLS) return `The database at ${host} speaks no TLS, which sslmode=${sslMode} asks for.`;
  if (OF_CERTIFICATE.test(code))
    return `The certificate of the database at ${host} does not do for sslmode=${sslMode}: ${says}. sslrootcert=FILE names the authority that signs it.`;
  return `The database at ${host} cannot be opened: ${says}.`;
}
