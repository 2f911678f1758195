// Command plant writes what go test -overlay needs into a folder: copies of the locks' files with the mistakes
// of package planted, and overlay.json. It runs in the project's folder.
//
//	go run ./internal/testing/planted/plant .planted
//	go test -tags planted -overlay .planted/overlay.json ./internal/testing/sim/campaign -run Power
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"log"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: plant FOLDER")
	}
	if err := plant(os.Args[1]); err != nil {
		log.Fatal("plant: ", err)
	}
}

func plant(folder string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	texts := make(map[string]string) // by file
	for _, m := range mistakes {
		text, edited := texts[m.file]
		if !edited {
			read, err := os.ReadFile(m.file)
			if err != nil {
				return err
			}
			text = strings.Replace(string(read), "\nimport ", "\nimport \"github.com/holdfast-go/holdfast/internal/testing/planted\"\nimport ", 1)
		}
		if n := strings.Count(text, m.from); n != 1 {
			return fmt.Errorf("%q: %s has the text %d times: %s", m.name, m.file, n, m.from)
		}
		texts[m.file] = strings.Replace(text, m.from, strings.ReplaceAll(m.to, "MISTAKE", fmt.Sprintf("planted.Is(%q)", m.name)), 1)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	replace := make(map[string]string)
	for file, text := range texts {
		planted, err := format.Source([]byte(text))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		original, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		replace[original] = filepath.Join(folder, strings.ReplaceAll(file, "/", "_"))
		if err := update(replace[original], planted); err != nil {
			return err
		}
	}
	overlay, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return err
	}
	return update(filepath.Join(folder, "overlay.json"), overlay)
}

// update writes a file unless it has this content: a compiler may be reading it.
func update(file string, content []byte) error {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, content) {
		return nil
	}
	return os.WriteFile(file, content, 0o644)
}
