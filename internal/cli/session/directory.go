package session

import (
	"errors"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/transfer"
)

// FetchDirectory fetches a folder of which the server says this. again asks the server
// once more, for an address that has not expired.
func FetchDirectory(to *transfer.Folder, f transfer.Directory, said *api.Directory, again func() (*api.Directory, error)) (err error) {
	f.Bytes = said.Bytes
	if f.Data, err = dataURL(said); err != nil {
		return err
	}
	f.Renew = func() (string, error) {
		said, err := again()
		if err != nil {
			return "", err
		}
		return dataURL(said)
	}
	return to.FetchDirectory(f)
}

func dataURL(d *api.Directory) (string, error) {
	if d == nil || d.DataURL == nil {
		return "", errors.New("this server gives folders only as archives: download the folder in the app, or upgrade the server")
	}
	return *d.DataURL, nil
}

// SizeOf is how much a file or folder holds: of a folder, the sum of its files.
func SizeOf(size int64, folder *api.Directory) int64 {
	if folder != nil {
		return folder.Bytes
	}
	return size
}
