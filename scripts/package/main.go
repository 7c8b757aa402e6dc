// Command package compiles the functions under functions/. `package zip` is `make
// package`: it makes what Lambda runs. `package build` is `make build`: the same
// executables for this machine. `package notes` is `make notes`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"

	"orderonce/adapters/config"
	"orderonce/scripts/package/release"
)

type commands struct {
	Zip   zip   `cmd:"" help:"Zip every function for Lambda, and sum the zips."`
	Build build `cmd:"" help:"Compile every function for this machine, with the flags of a release."`
	Notes notes `cmd:"" help:"Print what CHANGELOG.md says about the release of a tag."`
}

func main() {
	var c commands
	k := kong.Parse(&c, kong.Name("package"), kong.UsageOnError(), kong.Description(
		"Compile every function under functions/. Run it in the module's root. The same source and the same Go release make the "+
			"same bytes on any machine: compare yours with `sha256sum --check SHA256SUMS`.",
	))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	k.BindTo(ctx, (*context.Context)(nil))
	err := k.Run()
	stop()
	k.FatalIfErrorf(err)
}

type zip struct {
	Arch string `default:"arm64" env:"GOARCH" enum:"arm64,amd64" help:"Processor to build for: arm64 or amd64."`
	Dir  string `arg:"" default:"build/package" help:"Folder for what is made, and SHA256SUMS."`
}

// Run packages every function and prints the sizes and the checksums.
func (z zip) Run(ctx context.Context) error {
	artifacts, err := release.Package(ctx, ".", z.Arch, z.Dir)
	if err != nil {
		return err
	}
	for _, a := range artifacts {
		fmt.Printf("%-14s %6.2f MB  %s\n", a.Name+".zip", float64(a.Bytes)/1e6, a.SHA256)
	}
	fmt.Printf("For linux/%s, in %s, with %s.\n", z.Arch, z.Dir, release.Sums)
	fmt.Println("The bill of materials of each is NAME.cdx.json.")
	return nil
}

type build struct {
	Dir string `arg:"" default:"build" help:"Folder for the executables."`
}

// Run compiles every function.
func (b build) Run(ctx context.Context) error { return release.Build(ctx, ".", b.Dir) }

type notes struct {
	Links string `help:"Address of the repository's root at the tag, for links to documents." default:"."`
	Tag   string `arg:"" help:"Such as v0.1.0: the version of the source, and the newest in CHANGELOG.md."`
}

// Run prints the notes of a release.
func (n notes) Run() error {
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	text, err := release.Notes(string(changelog), config.Version, n.Tag, n.Links)
	fmt.Print(text)
	return err
}
