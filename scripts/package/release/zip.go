package release

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"io"
)

// Executable is the name of the file that the runtime provided.al2023 starts.
// Source: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-provided.html.
const Executable = "bootstrap"

// january1980 is the earliest date of the format, as MS-DOS encodes it: seven bits for
// the years since 1980, four for the month, five for the day.
const january1980 = 0<<9 | 1<<5 | 1

// Zip packs an executable for Lambda: one file in the root, readable and executable by
// everybody. Everything else in the zip is constant, so that equal executables make equal
// zips.
func Zip(executable []byte) ([]byte, error) {
	header := &zip.FileHeader{
		Name: Executable, Method: zip.Deflate,
		ModifiedDate: january1980, //nolint:staticcheck // SA1019: Modified would add a field for the time
	}
	header.SetMode(0o755)
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(out, flate.BestCompression)
	})
	file, err := w.CreateHeader(header)
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(executable); err != nil {
		return nil, err
	}
	err = w.Close() // writes the directory
	return out.Bytes(), err
}
