// Reading the packages that a step names.

const requirement =
  /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\s*(\[[A-Za-z0-9._, -]*\])?\s*\(?\s*((===|==|!=|<=|>=|~=|<|>)\s*[A-Za-z0-9][A-Za-z0-9.*!+_-]*\s*(,\s*(===|==|!=|<=|>=|~=|<|>)\s*[A-Za-z0-9][A-Za-z0-9.*!+_-]*\s*)*)?\)?\s*(;.+)?$/;

/** readPackages lists the lines that are not empty. */
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

const matchSpec =
  /^[A-Za-z0-9_][A-Za-z0-9_.-]*\s*(\*|==?\s*[A-Za-z0-9_.+!]+=[A-Za-z0-9_.+*]+|((==|!=|<=|>=|~=|=|<|>)?\s*[A-Za-z0-9_.+!]+\*?)(\s*[,|]\s*(==|!=|<=|>=|~=|=|<|>)?\s*[A-Za-z0-9_.+!]+\*?)*(\s+[A-Za-z0-9_.+*]+)?)?$/;

/** wrongConda says what is wrong with the first line that names no conda package. The server looks closer. */
export function wrongConda(text: string): string | null {
  const line = readPackages(text).find((each) => each.length > 256 || !matchSpec.test(each));
  if (line === undefined) return null;
  if (line.startsWith("-")) return `“${line}” is an option: only packages can be named.`;
  if (/[@/\\]/.test(line)) return `“${line}” is an address or path: only packages can be named.`;
  if (line.includes("::")) return `“${line}” names a channel: list it below.`;
  return `“${line}” is not a package such as samtools=1.20`;
}

/** readChannels lists the names between commas or spaces. */
export function readChannels(text: string): string[] {
  return text.split(/[\s,]+/).filter((name) => name !== "");
}

export function wrongChannel(text: string): string | null {
  const name = readChannels(text).find((each) => !/^[a-z0-9][a-z0-9._-]{0,63}$/.test(each));
  return name === undefined ? null : `“${name}” is not the name of a channel such as conda-forge`;
}

/** wrongLock says why a text is no lock. The server looks closer. */
export function wrongLock(text: string): string | null {
  if (text.trim() === "") return null;
  if (!/^# (python 3\.\d+|conda [a-z0-9-]+)\s*$/m.test(text.trimStart().split("\n", 1)[0] ?? ""))
    return "A lock begins with a line such as “# python 3.12” or “# conda linux-64”.";
  const lines = text.replaceAll(/\\\s*\n/g, " ").split("\n");
  const line = lines.find(
    (each) => each.trim() !== "" && !each.trimStart().startsWith("#") && !each.includes("--hash=sha256:"),
  );
  return line === undefined
    ? null
    : `“${line.trim().slice(0, 80)}” has no hash: only files whose hash is known are installed.`;
}
