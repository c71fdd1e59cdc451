package cli

import (
	"testing"

	"github.com/millrace/millrace/internal/cli/clitest"
)

func TestQuotasAreShownWithTheirUse(t *testing.T) {
	t.Parallel()
	const none = `{"executors":null,"monthlyVcpuHours":null,"perPersonVcpuHours":null,"storageGb":null,"storageBytes":0,
		"team":{"usedVcpuHours":0,"heldVcpuHours":0},"own":{"usedVcpuHours":0,"heldVcpuHours":0},"people":null,"renewsAt":"2026-12-01T00:00:00.000Z"}`
	const some = `{"executors":["local","slurm"],"monthlyVcpuHours":2000,"perPersonVcpuHours":0.5,"storageGb":2,"storageBytes":1000,
		"team":{"usedVcpuHours":12.345,"heldVcpuHours":1},"own":{"usedVcpuHours":0.25,"heldVcpuHours":0},"renewsAt":"2026-12-01T00:00:00.000Z",
		"people":[{"id":"user_1","name":"Ada\u001b[2J","usedVcpuHours":12,"heldVcpuHours":1},{"id":null,"name":null,"usedVcpuHours":0.1,"heldVcpuHours":0},{"id":"user_2","name":null,"usedVcpuHours":0,"heldVcpuHours":0}]}`
	for answer, want := range map[string]string{
		none: "team       0 vCPU hours this month, no limit\nyou        0 vCPU hours this month, no limit\nrenews     2026-12-01\nstorage    0 B, no limit\nexecutors  all\n",
		some: "team       13.35 of 2,000 vCPU hours this month\nyou        0.25 of 0.5 vCPU hours this month\nrenews     2026-12-01\nstorage    1000 B of 2 GB\nexecutors  local, slurm\n" +
			"\nPERSON           VCPU HOURS\nAda[2J           13\nguests           0.1\na former member  0\n",
	} {
		server := clitest.ServeAPI(t, map[string]string{"GET /api/billing/quotas": clitest.Data(answer)})
		check(t, server, map[string]typed{"quotas": {"quotas", "", want, "", "GET /api/billing/quotas"}})
	}
}
