// Command package is `make package`: it builds every function under functions/ for Lambda and zips it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"orderonce/scripts/package/release"
)

type arguments struct {
	Arch string `default:"arm64" env:"GOARCH" enum:"arm64,amd64" help:"Processor to build for: arm64 or amd64."`
	Dir  string `arg:"" default:"build/package" help:"Where the zips, their bills of materials and SHA256SUMS go."`
}

func main() {
	var a arguments
	k := kong.Parse(&a, kong.Name("package"), kong.UsageOnError(), kong.Description(
		"Build every function under functions/ for Lambda's runtime provided.al2023. Each becomes NAME.zip with one executable "+
			"named bootstrap, and NAME.cdx.json, a CycloneDX bill of the modules in it. The same source and the same Go release make "+
			"the same bytes on any machine: compare yours with `sha256sum --check SHA256SUMS`. Run it in the module's root."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	artifacts, err := release.Package(ctx, ".", a.Arch, a.Dir)
	stop()
	k.FatalIfErrorf(err)
	show(a, artifacts)
}

func show(a arguments, artifacts []release.Artifact) {
	t := table.NewWriter()
	t.SetOutputMirror(os.Stdout)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: text.AlignRight}})
	t.AppendHeader(table.Row{"linux/" + a.Arch, "size", "sha256"})
	for _, artifact := range artifacts {
		t.AppendRow(table.Row{artifact.Name + ".zip", fmt.Sprintf("%.2f MB", float64(artifact.Bytes)/1e6), artifact.SHA256})
	}
	t.Render()
	fmt.Printf("In %s, each with its bill of materials NAME.cdx.json, and %s.\n", a.Dir, release.Sums)
}
