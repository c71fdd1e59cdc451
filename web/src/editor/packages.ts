// Which Python packages a step names, and what is no package.

const requirement =
  /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\s*(\[[A-Za-z0-9._, -]*\])?\s*\(?\s*((===|==|!=|<=|>=|~=|<|>)\s*[A-Za-z0-9][A-Za-z0-9.*!+_-]*\s*(,\s*(===|==|!=|<=|>=|~=|<|>)\s*[A-Za-z0-9][A-Za-z0-9.*!+_-]*\s*)*)?\)?\s*(;.+)?$/;

/** readPackages are the lines that say something. */
export function readPackages(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** wrongPackage says what is wrong with the first line that names no package. The server looks closer. */
export function wrongPackage(text: string): string | null {
  const line = readPackages(text).find((each) => each.length > 256 || !requirement.test(each));
  if (line === undefined) return null;
  if (line.startsWith("-")) return `“${line}” is an option: only packages can be named.`;
  if (/[@/\\]/.test(line)) return `“${line}” is an address or path: only packages can be named.`;
  return `“${line}” is not a package such as pandas==2.2.*`;
}
