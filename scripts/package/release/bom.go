package release

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// BOM returns the bill of materials of a function's executable as CycloneDX JSON: the Go
// release and every module that is linked into it, with the checksums of go.sum. It reads
// the executable and not go.mod, which also names what only tests and programs need. The
// executable holds neither licences nor dependencies between modules, so the bill does
// not.
//
// Equal executables have equal bills: the bill holds no time, and its serial number is
// computed from the executable. The format recommends a new number for each bill.
func BOM(name string, executable []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(executable))
	if err != nil {
		return nil, fmt.Errorf("bill of materials of %s: %w", name, err)
	}
	components := []cdx.Component{library("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		components = append(components, library(module.Path, module.Version, module.Sum))
	}
	sum := sha256.Sum256(executable)
	bom := cdx.NewBOM()
	bom.SerialNumber = serial(sum)
	bom.Components = &components
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{
		BOMRef: info.Path, Type: cdx.ComponentTypeApplication, Name: name,
		Hashes:     sha256Of(sum[:]),
		Properties: settings(info.Settings),
	}}
	var out bytes.Buffer
	encoder := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("bill of materials of %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// addBOM adds the bill of materials of a function to the files of a release.
func addBOM(files map[string][]byte, name string, executable []byte) (err error) {
	files[name+".cdx.json"], err = BOM(name, executable)
	return err
}

// library describes a Go module, or the standard library. sum is the one of go.sum, a
// SHA-256 over the checksums of the module's files. cyclonedx-gomod uses it the same way.
func library(path, version, sum string) cdx.Component {
	// A package URL of Go is lower case (purl-spec, types/golang), and a version such as
	// v2.0.0+incompatible is escaped.
	ref := "pkg:golang/" + strings.ToLower(path) + "@" + url.QueryEscape(version)
	c := cdx.Component{
		BOMRef:     ref,
		Type:       cdx.ComponentTypeLibrary,
		Name:       path,
		Version:    version,
		PackageURL: ref,
	}
	if hash, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil &&
		len(hash) == sha256.Size {
		c.Hashes = sha256Of(hash)
	}
	return c
}

func sha256Of(sum []byte) *[]cdx.Hash {
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
}

// settings returns the build settings, such as GOARCH and -tags.
func settings(all []debug.BuildSetting) *[]cdx.Property {
	properties := []cdx.Property{}
	for _, s := range all {
		properties = append(properties, cdx.Property{Name: "go:build:" + s.Key, Value: s.Value})
	}
	return &properties
}

// serial returns a UUID of version 8, whose content is free (RFC 9562, section 5.8).
func serial(sum [sha256.Size]byte) string {
	id := sum[:16]
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
