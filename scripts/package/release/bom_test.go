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

// A test's own executable does not list its modules, so the bill is that of the order
// function.
func TestBOM(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	path := filepath.Join(t.TempDir(), "bootstrap")
	must(t, lambdatest.Build(t.Context(), "functions/order", path))
	executable, err := os.ReadFile(path)
	must(t, err)
	bill, err := release.BOM("order", executable)
	must(t, err)
	var bom cdx.BOM
	must(t, cdx.NewBOMDecoder(bytes.NewReader(bill), cdx.BOMFileFormatJSON).Decode(&bom))

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
	if hash, sum := (*bom.Metadata.Component.Hashes)[0].Value, sha256.Sum256(executable); hash != hex.EncodeToString(sum[:]) {
		t.Errorf("hash %v, want SHA-256 %x", hash, sum)
	}
	// As the format's JSON schema has it, with version and variant.
	uuid := regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	again, err := release.BOM("order", executable)
	must(t, err)
	other, err := release.BOM("order", append(bytes.Clone(executable), 0))
	must(t, err)
	if !uuid.MatchString(bom.SerialNumber) || bytes.Contains(other, []byte(bom.SerialNumber)) ||
		!bytes.Equal(again, bill) || bom.Metadata.Timestamp != "" {
		t.Errorf("serial number %q, time %q: want a UUID of version 8 of the content, and no time",
			bom.SerialNumber, bom.Metadata.Timestamp)
	}
	if _, err := release.BOM("order", []byte("#!/bin/sh")); err == nil || !strings.Contains(err.Error(), "order") {
		t.Errorf("a script: error %v, want one that names the function", err)
	}
}
