module github.com/holdfast-go/holdfast/adapters/cronholdfast

go 1.26.0

require (
	github.com/holdfast-go/holdfast v0.0.0
	github.com/robfig/cron/v3 v3.0.1
	github.com/stretchr/testify v1.11.1
	go.uber.org/goleak v1.3.0
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace github.com/holdfast-go/holdfast => ../..
