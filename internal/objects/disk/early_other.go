//go:build !linux

package disk

import "os"

func beginWriting(*os.File, int64, int64) {}
