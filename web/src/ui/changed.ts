/** changed is an object with some fields set, and those that are undefined gone. */
export function changed<T extends object>(old: T, change: { [K in keyof T]?: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries({ ...old, ...change }).filter(([, value]) => value !== undefined)) as T;
}
