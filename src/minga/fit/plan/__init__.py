"""Who does which cells: cuts, the cost model that judges them, and the plan that comes out."""
