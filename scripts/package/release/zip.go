package release

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"hash/crc32"
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
//
// It writes the header itself, because archive/zip would put the sizes after the data and
// add a field for the time.
func Zip(executable []byte) ([]byte, error) {
	packed, err := deflate(executable)
	if err != nil {
		return nil, err
	}
	header := &zip.FileHeader{
		Name:               Executable,
		Method:             zip.Deflate,
		ReaderVersion:      20, // deflate came with 2.0
		CRC32:              crc32.ChecksumIEEE(executable),
		CompressedSize64:   uint64(len(packed)),
		UncompressedSize64: uint64(len(executable)),
		ModifiedDate:       january1980, //nolint:staticcheck // SA1019: Modified is not read in raw mode
	}
	header.SetMode(0o755)
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	file, err := w.CreateRaw(header)
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(packed); err != nil {
		return nil, err
	}
	err = w.Close() // writes the directory
	return out.Bytes(), err
}

func deflate(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}
