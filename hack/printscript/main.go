// Command printscript prints the text of a script as Redis runs it, or the names of all
// scripts:
//
//	go run ./hack/printscript [name]
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/holdfast-go/holdfast/scripts"
)

func main() {
	all := scripts.Scripts()
	if len(os.Args) < 2 {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			fmt.Println(name)
		}
		return
	}
	text, known := all[os.Args[1]]
	if !known {
		fmt.Fprintf(os.Stderr, "no script %q; without a name all are listed\n", os.Args[1])
		os.Exit(2)
	}
	fmt.Print(text)
}
