/** `import path from "./languages.bin" with { type: "file" }` gives the file's path, inside a compiled executable too. */
declare module "*.bin" {
  const path: string;
  export default path;
}
