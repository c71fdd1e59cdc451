package builtin

import "time"

// CodeOf is what an app shows that was given a secret.
func CodeOf(secret string, now time.Time) string {
	key, err := base32Secret.DecodeString(secret)
	if err != nil {
		panic(err)
	}
	return SecondFactor{Secret: key}.code(now.Unix() / int64(codeStep.Seconds()))
}
