package release_test

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/package/release"
)

// build makes an executable with modules in it. A test's own executable does not list its
// modules.
func build(t *testing.T) []byte {
	t.Helper()
	lambdatest.FullOnly(t)
	path := filepath.Join(t.TempDir(), "bootstrap")
	must(t, lambdatest.Build(t.Context(), "functions/order", path))
	executable, err := os.ReadFile(path)
	must(t, err)
	return executable
}

func billOf(t *testing.T, executable []byte) (text string, bom cdx.BOM) {
	t.Helper()
	bill, err := release.BOM("order", executable)
	must(t, err)
	must(t, cdx.NewBOMDecoder(bytes.NewReader(bill), cdx.BOMFileFormatJSON).Decode(&bom))
	return string(bill), bom
}

func TestBOM(t *testing.T) {
	t.Parallel()
	executable := build(t)
	text, bom := billOf(t, executable)
	t.Run("it holds every module of the executable, with go.sum's checksum", func(t *testing.T) {
		t.Parallel()
		info, err := buildinfo.Read(bytes.NewReader(executable))
		must(t, err)
		want := []string{"pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}
		for _, m := range info.Deps {
			want = append(want, "pkg:golang/"+strings.ToLower(m.Path)+"@"+m.Version)
		}
		var got []string
		for _, c := range *bom.Components {
			got = append(got, c.PackageURL)
			if c.Name != "std" && (c.Hashes == nil || len((*c.Hashes)[0].Value) != hex.EncodedLen(sha256.Size)) {
				t.Errorf("%s has hashes %v, want the one of go.sum", c.Name, c.Hashes)
			}
		}
		if diff := cmp.Diff(got, want); diff != "" || len(want) < 3 {
			t.Errorf("of %d modules, - in the bill, + in the executable:\n%s", len(want), diff)
		}
	})
	t.Run("it names the executable by its content, and holds no time", func(t *testing.T) {
		t.Parallel()
		sum := sha256.Sum256(executable)
		if got := (*bom.Metadata.Component.Hashes)[0]; got.Algorithm != cdx.HashAlgoSHA256 ||
			got.Value != hex.EncodeToString(sum[:]) {
			t.Errorf("hash %v, want SHA-256 %x", got, sum)
		}
		// As the format's JSON schema has it, with version and variant.
		uuid := regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
		_, other := billOf(t, append(bytes.Clone(executable), 0))
		if !uuid.MatchString(bom.SerialNumber) || other.SerialNumber == bom.SerialNumber {
			t.Errorf("serial numbers %q and %q, want two UUIDs of version 8", bom.SerialNumber, other.SerialNumber)
		}
		if again, _ := billOf(t, executable); again != text || bom.Metadata.Timestamp != "" {
			t.Errorf("timestamp %q, the same bytes: %t", bom.Metadata.Timestamp, again == text)
		}
	})
}

func TestAFileThatIsNotAnExecutableHasNoBill(t *testing.T) {
	t.Parallel()
	if bill, err := release.BOM("order", []byte("#!/bin/sh")); err == nil ||
		!strings.Contains(err.Error(), "order") {
		t.Errorf("got %d bytes, error %v, want an error that names the function", len(bill), err)
	}
}
